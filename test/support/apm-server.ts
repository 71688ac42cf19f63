import { receiving } from './receiving.js';
import { until } from './until.js';

type Fields = Readonly<Record<string, unknown>>;

/** A transaction or span as received by Elastic's intake. */
export interface ApmSpan extends Fields {
  readonly name: string;
  readonly id: string;
  readonly trace_id: string;
  readonly parent_id?: string;
  readonly outcome?: string;
  readonly otel?: { readonly span_kind?: string; readonly attributes?: Fields };
}

export interface ApmError extends Fields {
  readonly trace_id?: string;
  readonly exception?: { readonly message?: string; readonly type?: string };
}

/** A fake Elastic APM server. */
export interface ApmServer {
  readonly url: string;
  readonly transactions: readonly ApmSpan[];
  readonly spans: readonly ApmSpan[];
  readonly errors: readonly ApmError[];
  /** The agents' metadata, one entry per request. */
  readonly metadata: readonly (Fields & { readonly service: Fields; readonly process?: Fields })[];
  readonly requests: number;
  /** The `authorization` header of each intake request. */
  readonly authorizations: readonly (string | undefined)[];
  /** Everything received, to search for leaked secrets. */
  text(): string;
  /**
   * Waits for `count` transactions or spans of this name. The agent keeps a request open for ten
   * seconds; it counts once it has ended.
   */
  arrived(name: string, count?: number): Promise<readonly ApmSpan[]>;
  close(): Promise<void>;
}

/**
 * https://www.elastic.co/guide/en/observability/current/apm-api-events.html
 * @param options.port reuses the port of a closed server
 */
export async function apmServer(options: { port?: number } = {}): Promise<ApmServer> {
  const server = await receiving(
    (path) => (path === '/' ? { status: 200, body: '{"version":"8.12.0"}' } : { status: 202 }),
    options,
  );
  const intake = () => server.requests.filter(({ path }) => path.startsWith('/intake/v2/events'));
  const events = <Event>(kind: string): Event[] =>
    intake()
      .flatMap(({ body }) => body.split('\n').filter(Boolean))
      .map((line) => JSON.parse(line) as Record<string, Event | undefined>)
      .flatMap((event) => event[kind] ?? []);
  return {
    url: server.url,
    get transactions() {
      return events<ApmSpan>('transaction');
    },
    get spans() {
      return events<ApmSpan>('span');
    },
    get errors() {
      return events<ApmError>('error');
    },
    get metadata() {
      return events<Fields & { service: Fields }>('metadata');
    },
    get requests() {
      return server.requests.length;
    },
    get authorizations() {
      return intake().map(({ headers }) => headers.authorization);
    },
    text: () =>
      server.requests
        .map(({ path, headers, body }) => `${path} ${JSON.stringify(headers)}\n${body}`)
        .join('\n'),
    arrived: (name, count = 1) =>
      until(`${count} spans ${name} at the APM server`, () => {
        const found = [...events<ApmSpan>('transaction'), ...events<ApmSpan>('span')].filter(
          (span) => span.name === name,
        );
        return found.length >= count && found;
      }),
    close: () => server.close(),
  };
}
