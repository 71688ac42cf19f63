import { receiving } from './receiving.js';
import { until } from './until.js';

type Fields = Readonly<Record<string, unknown>>;

/** What Sentry is told of one failure, or of one trace or part of it. */
export interface SentryItem extends Fields {
  /** Of a transaction: the name of its span. */
  readonly transaction?: string;
  readonly release: string;
  readonly environment: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly fingerprint?: readonly string[];
  readonly contexts: Readonly<Record<string, Fields>> & { readonly trace: Fields };
  readonly exception?: { readonly values: readonly { readonly type: string; readonly value: string }[] };
  readonly spans?: readonly Fields[];
}

/** A server that speaks the protocol of Sentry, as far as a sender sees it. */
export interface Sentry {
  /** The DSN of a project, with a key in it. */
  readonly dsn: string;
  readonly key: string;
  readonly host: string;
  readonly errors: readonly SentryItem[];
  readonly transactions: readonly SentryItem[];
  readonly requests: number;
  /** Everything that arrived, to be searched for what must not. */
  text(): string;
  /** Waits until that many transactions of this name have arrived, those that became spans of another one counted as well. */
  arrived(name: string, count?: number): Promise<readonly Fields[]>;
  /** The status that requests are answered with from now on. */
  answer(status: number): void;
  close(): Promise<void>;
}

/** Starts one on loopback: https://develop.sentry.dev/sdk/data-model/envelopes/ */
export async function sentry(options: { port?: number } = {}): Promise<Sentry> {
  let status = 200;
  const key = '0123456789abcdef0123456789abcdef';
  const server = await receiving(() => ({ status }), options);
  const items = (wanted: string) =>
    server.requests.filter(({ path }) => path.startsWith('/api/42/envelope/')).flatMap(({ body }) => itemsOf(body, wanted));
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
    text: () => server.requests.map(({ path, headers, body }) => `${path} ${JSON.stringify(headers)}\n${body}`).join('\n'),
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

/** An envelope is a line about itself, then two lines an item: what it is, and the item. */
function itemsOf(body: string, wanted: string): SentryItem[] {
  const [, ...lines] = body
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Fields);
  return lines.flatMap((line, at) => (at % 2 === 0 && line['type'] === wanted ? [lines[at + 1] as SentryItem] : []));
}
