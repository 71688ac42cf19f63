import { receiving } from './receiving.js';
import { until } from './until.js';

type Fields = Readonly<Record<string, unknown>>;

/** A transaction or span as the intake of Elastic gets it. */
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

/** An APM server of Elastic, as far as its agent sees it. */
export interface ApmServer {
  readonly url: string;
  readonly transactions: readonly ApmSpan[];
  readonly spans: readonly ApmSpan[];
  readonly errors: readonly ApmError[];
  /** What the agents told of themselves, one for each request. */
  readonly metadata: readonly (Fields & { readonly service: Fields; readonly process?: Fields })[];
  readonly requests: number;
  /** The `authorization` of each request to the intake. */
  readonly authorizations: readonly (string | undefined)[];
  /** Everything that arrived, to be searched for what must not. */
  text(): string;
  /** Waits for transactions or spans of this name. The agent sends for ten seconds with one request, which counts when it has ended. */
  arrived(name: string, count?: number): Promise<readonly ApmSpan[]>;
  close(): Promise<void>;
}

/**
 * Starts one on loopback: https://www.elastic.co/guide/en/observability/current/apm-api-events.html
 * @param options.port to come back where another one was closed
 */
export async function apmServer(options: { port?: number } = {}): Promise<ApmServer> {
  const server = await receiving((path) => (path === '/' ? { status: 200, body: '{"version":"8.12.0"}' } : { status: 202 }), options);
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
    text: () => server.requests.map(({ path, headers, body }) => `${path} ${JSON.stringify(headers)}\n${body}`).join('\n'),
    arrived: (name, count = 1) =>
      until(`${count} spans ${name} at the APM server`, () => {
        const found = [...events<ApmSpan>('transaction'), ...events<ApmSpan>('span')].filter((span) => span.name === name);
        return found.length >= count && found;
      }),
    close: () => server.close(),
  };
}
