import { receiving } from './receiving.js';
import { until } from './until.js';

type Fields = Readonly<Record<string, unknown>>;

/** An error, or a trace or a part of one. */
export interface SentryItem extends Fields {
  /** The name of a transaction's span. */
  readonly transaction?: string;
  readonly release: string;
  readonly environment: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly fingerprint?: readonly string[];
  readonly contexts: Readonly<Record<string, Fields>> & { readonly trace: Fields };
  readonly exception?: {
    readonly values: readonly { readonly type: string; readonly value: string }[];
  };
  readonly spans?: readonly Fields[];
}

/** A fake Sentry server. */
export interface Sentry {
  /** The DSN of a project, with its key. */
  readonly dsn: string;
  readonly key: string;
  readonly host: string;
  readonly errors: readonly SentryItem[];
  readonly transactions: readonly SentryItem[];
  readonly requests: number;
  /** Everything received, to search for leaked secrets. */
  text(): string;
  /**
   * Waits for `count` transactions of this name, including those sent as spans of another
   * transaction.
   */
  arrived(name: string, count?: number): Promise<readonly Fields[]>;
  answer(status: number): void;
  close(): Promise<void>;
}

/** https://develop.sentry.dev/sdk/data-model/envelopes/ */
export async function sentry(options: { port?: number } = {}): Promise<Sentry> {
  let status = 200;
  const key = '0123456789abcdef0123456789abcdef';
  const server = await receiving(() => ({ status }), options);
  const items = (wanted: string) =>
    server.requests
      .filter(({ path }) => path.startsWith('/api/42/envelope/'))
      .flatMap(({ body }) => itemsOf(body, wanted));
  const spans = () =>
    items('transaction').flatMap(({ transaction, contexts, spans = [] }) => [
      { ...contexts.trace, name: transaction },
      ...spans.map((span) => ({ ...span, name: span['description'] })),
    ]);
  return {
    dsn: `http://${key}@${server.host}/42`,
    key,
    host: server.host,
    get errors() {
      return items('event');
    },
    get transactions() {
      return items('transaction');
    },
    get requests() {
      return server.requests.length;
    },
    text: () =>
      server.requests
        .map(({ path, headers, body }) => `${path} ${JSON.stringify(headers)}\n${body}`)
        .join('\n'),
    arrived: (name, count = 1) =>
      until(`${count} spans ${name} at Sentry`, () => {
        const found = spans().filter((span) => span.name === name);
        return found.length >= count && found;
      }),
    answer: (changed) => {
      status = changed;
    },
    close: () => server.close(),
  };
}

/** An envelope is a header line, then two lines per item: its header and the item. */
function itemsOf(body: string, wanted: string): SentryItem[] {
  const [, ...lines] = body
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Fields);
  return lines.flatMap((line, at) =>
    at % 2 === 0 && line['type'] === wanted ? [lines[at + 1] as SentryItem] : [],
  );
}
