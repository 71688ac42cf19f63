import type { Call, CallOptions, Transport } from './call.js';
import { GatewayApiError } from './error.js';
import { resources, type Resources } from './generated.js';
import { Pages } from './pages.js';

export interface ClientOptions {
  /** The URL of the gateway with its root path, such as `https://gateway.example.com`. */
  readonly url: string;
  /** A personal or project key. If omitted, uses the browser's session on the same host. */
  readonly key?: string;
  /** Returns the session's CSRF token, sent with each change. */
  readonly csrfToken?: () => string | undefined;
  readonly projectId?: string;
  /**
   * The maximum number of retries; 3 by default. Requests are retried after status 429 and, if
   * safe, after 503 and lost connections. Requests that create something are sent with an
   * idempotency key.
   */
  readonly retries?: number;
  /** The timeout of one attempt; 30,000 by default. */
  readonly timeoutMs?: number;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch;
}

const RETRIES = 3;
const TIMEOUT_MS = 30_000;
const BACKOFF_MS = 250;
/** The longest `Retry-After` that the client waits for. For a longer one, it throws the error. */
const PAUSE_MAX_MS = 60_000;

/**
 * The client of the management API, with one property per resource: `client.endpoints.create({ …
 * })`. Methods reject with a `GatewayApiError` or the error of `fetch`.
 */
export interface GatewayClient extends Resources {}

// `Object.assign` adds the properties of the interface above.
export class GatewayClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
    const transport: Transport = {
      call: (call) => this.#call(call),
      list: (call) =>
        new Pages((cursor) => {
          const after = cursor === undefined ? {} : { direction: 'next', next_page_cursor: cursor };
          return this.#call({ ...call, query: { ...call.query, ...after } });
        }),
    };
    Object.assign(this, resources(transport));
  }

  /** Returns a client for another project, with otherwise the same options. */
  project(projectId: string): GatewayClient {
    return new GatewayClient({ ...this.#options, projectId });
  }

  #credentials(method: string): Record<string, string> {
    const { key, csrfToken } = this.#options;
    if (key !== undefined) return { authorization: `Bearer ${key}` };
    const token = method === 'GET' ? undefined : csrfToken?.();
    return token === undefined ? {} : { 'x-csrf-token': token };
  }

  async #call<Data>({
    method,
    path,
    parameters = {},
    query = {},
    body,
    isCreatedOnce,
    options = {},
  }: Call): Promise<Data> {
    const {
      url,
      projectId,
      retries = RETRIES,
      timeoutMs = TIMEOUT_MS,
      fetch: send = fetch,
    } = this.#options;
    const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const value = parameters[name] ?? (name === 'project_id' ? projectId : undefined);
      if (value === undefined)
        throw new TypeError(
          `${method} ${path} needs a ${name}${name === 'project_id' ? ': give the client a projectId' : ''}`,
        );
      return encodeURIComponent(value);
    });
    const target = new URL(`${url.replace(/\/+$/, '')}/api/v1${place}`);
    for (const [name, value] of Object.entries(query))
      for (const one of [value].flat())
        if (one !== undefined) target.searchParams.append(name, String(one));
    const key =
      isCreatedOnce && !isIdempotent(body, options) ? { 'idempotency-key': randomKey() } : {};
    const isRepeatable = method !== 'POST' || isCreatedOnce || isIdempotent(body, options);
    for (let attempt = 0; ; attempt++) {
      const isLast = attempt >= retries;
      const deadline = AbortSignal.timeout(timeoutMs);
      let response: Response;
      try {
        response = await send(target, {
          method,
          headers: {
            ...this.#credentials(method),
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...key,
            ...options.headers,
          },
          credentials: 'same-origin',
          signal: options.signal ? AbortSignal.any([options.signal, deadline]) : deadline,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        const answer = (await response.json().catch(notJson)) as
          ({ data: Data } & Partial<GatewayApiError>) | undefined;
        if (response.ok && answer) return answer.data;
        const error = errorOf(response, answer);
        const isWorthRepeating =
          response.status === 429 ||
          (isRepeatable && (response.status === 503 || error.code === 'request_in_progress'));
        const pauseMs = pauseOf(response, attempt);
        if (isLast || !isWorthRepeating || pauseMs > PAUSE_MAX_MS) throw error;
        await pause(pauseMs, options.signal);
      } catch (error) {
        // The connection was lost or the attempt timed out.
        if (error instanceof GatewayApiError || options.signal?.aborted || isLast || !isRepeatable)
          throw error;
        await pause(BACKOFF_MS * 2 ** attempt, options.signal);
      }
    }
  }
}

function isIdempotent(body: unknown, { headers = {} }: CallOptions): boolean {
  return (
    (body as { idempotency_key?: string } | undefined)?.idempotency_key !== undefined ||
    Object.keys(headers).some((name) => name.toLowerCase() === 'idempotency-key')
  );
}

/** Returns a random key. Does not use `randomUUID`, which pages without TLS lack. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}

/** Returns undefined for a body that is not JSON. A connection lost in the body is another error. */
function notJson(error: unknown): undefined {
  if (!(error instanceof SyntaxError)) throw error;
}

function errorOf({ status, url }: Response, answer: unknown): GatewayApiError {
  if (typeof (answer as { code?: unknown } | undefined)?.code === 'string')
    return new GatewayApiError(status, answer as ConstructorParameters<typeof GatewayApiError>[1]);
  const fix = 'check the url of the client, and what stands between it and the gateway';
  return new GatewayApiError(status, {
    message: `${url} answered ${status}, and not as the gateway does`,
    code: 'unexpected_answer',
    fix,
  });
}

function pauseOf({ headers }: Response, attempt: number): number {
  const asked = Number(headers.get('retry-after') ?? NaN);
  return Number.isFinite(asked) ? asked * 1000 : BACKOFF_MS * 2 ** attempt;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal!.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
