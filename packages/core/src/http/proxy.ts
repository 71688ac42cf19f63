import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { Agent, buildConnector, Pool, type Dispatcher } from 'undici';
import { networkReason } from '../errors/connection-errors.js';
import { watchedConnector } from './connection-use.js';

/** The proxy fails, or rejects the request. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
}

interface ProxyOptions {
  /** `http://` or `https://`, with credentials if required. */
  readonly url: string;
  /**
   * Checks the host of each connection, for plain http at most every ten seconds. Rejects for a
   * forbidden host.
   */
  readonly check?: (host: string) => Promise<void>;
  /** Authorities of hosts and proxy. */
  readonly secureContext?: SecureContext | undefined;
  /** Replaces `secureContext` for the hosts. */
  readonly hostContext?: SecureContext | undefined;
  readonly connectTimeoutMs: number;
  readonly pooling?: Omit<Agent.Options, 'connect'>;
}

/** `close` waits for requests in flight; `destroy` aborts all. */
export type RequestDispatcher = Pick<Dispatcher, 'dispatch'> & {
  close(): Promise<void>;
  destroy(): Promise<void>;
};

/** A proxy as an undici dispatcher. */
export interface OpenProxy extends RequestDispatcher {
  readonly login: Readonly<Record<string, string>>;
  /** Connects to the proxy, or through it. Rejects with `ProxyError`. */
  connect(to?: URL): Promise<Socket>;
}

interface Proxy {
  readonly place: string;
  readonly login: Readonly<Record<string, string>>;
}

/** How long a check is valid for plain requests, whose connections serve any host. */
const CHECKED_MS = 10_000;
const CHECKED_HOSTS = 1_000;

/**
 * Creates a dispatcher, with the proxy if set. Clients with pools of `fetch` or Node.js agents need
 * none: see `proxyProcess`.
 * @param options.direct the connector without a proxy
 */
export function dispatcherOf({
  proxy,
  direct,
  ...options
}: Omit<ProxyOptions, 'url'> & {
  proxy: string | undefined;
  direct?: buildConnector.connector;
}): RequestDispatcher {
  if (proxy !== undefined) return openProxy({ ...options, url: proxy });
  return new Agent({ ...options.pooling, ...(direct ? { connect: direct } : {}) });
}

/**
 * Sends requests through an HTTP proxy: https by a CONNECT tunnel per connection, plain http with
 * absolute URLs, as proxies allow by default. Connections are pooled. The proxy resolves names.
 * undici's ProxyAgent has no host check, no CONNECT timeout, and one error for all statuses.
 */
export function openProxy(options: ProxyOptions): OpenProxy {
  const {
    url,
    check = () => Promise.resolve(),
    secureContext,
    hostContext = secureContext,
    connectTimeoutMs,
    pooling = {},
  } = options;
  const { protocol, origin, hostname, port, username, password } = new URL(url);
  const credentials = [username, password].map(decoded).join(':');
  const proxy: Proxy = {
    place: `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`,
    login:
      credentials === ':'
        ? {}
        : { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` },
  };
  const connectorWith = (context: SecureContext | undefined) =>
    watchedConnector(
      buildConnector({
        timeout: connectTimeoutMs,
        keepAlive: true,
        ...(context ? { secureContext: context } : {}),
      }),
    );
  const connect = connectorWith(secureContext);
  const connectThrough = hostContext === secureContext ? connect : connectorWith(hostContext);
  const connectToProxy: buildConnector.connector = (options, callback) =>
    connect(options, (...result) =>
      result[0] ? callback(unreachable(proxy, result[0]), null) : callback(null, result[1]),
    );
  const pool = new Pool(origin, { ...pooling, connect: connectToProxy });
  const tunnels = new Agent({
    ...pooling,
    connect: (options, callback) => {
      const host = bare(options.hostname);
      const target = `${host.includes(':') ? `[${host}]` : host}:${options.port || 443}`;
      check(host)
        .then(() => openTunnel(pool, proxy, target, connectTimeoutMs))
        .then(
          (httpSocket) => connectThrough({ ...options, httpSocket }, callback),
          (error: Error) => callback(error, null),
        );
    },
  });
  const checkOnce = remembering(check);
  return {
    dispatch(options, handler) {
      const target = new URL(String(options.origin));
      if (target.protocol === 'https:') return tunnels.dispatch(options, handler);
      // https://www.rfc-editor.org/rfc/rfc9112#name-absolute-form
      const given = Array.isArray(options.headers)
        ? options.headers
        : Object.entries(options.headers ?? {}).flat();
      const headers = [
        ...(given as string[]),
        'host',
        target.host,
        ...Object.entries(proxy.login).flat(),
      ];
      const absolute = { ...options, origin, path: target.origin + options.path, headers };
      checkOnce(bare(target.hostname))
        .then(() => pool.dispatch(absolute, failingAt407(handler, proxy)))
        .catch((error: Error) => handler.onError?.(error));
      return true;
    },
    login: proxy.login,
    connect: (to) =>
      to === undefined
        ? new Promise((resolve, reject) =>
            connectToProxy(
              { hostname, protocol, port: port || (protocol === 'https:' ? '443' : '80') },
              (error, socket) => (error ? reject(error) : resolve(socket)),
            ),
          )
        : openTunnel(pool, proxy, `${to.hostname}:${to.port || 443}`, connectTimeoutMs),
    close: async () => {
      await tunnels.close();
      await pool.close();
    },
    destroy: async () => void (await Promise.all([tunnels.destroy(), pool.destroy()])),
  };
}

function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

/** An unencoded percent sign is kept. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A 407 is an error, because the proxy sends it and not the host. */
function failingAt407(
  handler: Dispatcher.DispatchHandler,
  proxy: Proxy,
): Dispatcher.DispatchHandler {
  let refused = false;
  return {
    onConnect: (abort) => handler.onConnect?.(abort),
    onBodySent: (...sent) => handler.onBodySent?.(...sent),
    onHeaders: (status, ...rest) => {
      refused = status === 407;
      return refused || (handler.onHeaders?.(status, ...rest) ?? true);
    },
    onData: (chunk) => refused || (handler.onData?.(chunk) ?? true),
    onComplete: (trailers) =>
      refused ? handler.onError?.(refusal(proxy, 407)) : handler.onComplete?.(trailers),
    onError: (error) => handler.onError?.(error),
  };
}

/** https://www.rfc-editor.org/rfc/rfc9110#name-connect */
async function openTunnel(
  pool: Pool,
  proxy: Proxy,
  target: string,
  timeoutMs: number,
): Promise<Socket> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const { statusCode, socket } = await pool.connect({
      path: target,
      headers: { host: target, ...proxy.login },
      signal,
    });
    if (statusCode >= 200 && statusCode < 300) return socket as Socket;
    socket.on('error', () => undefined).destroy();
    throw refusal(proxy, statusCode, target);
  } catch (error) {
    if (error instanceof ProxyError) throw error;
    if (signal.aborted)
      throw new ProxyError(
        `The proxy ${proxy.place} opened no connection to ${target} within ${timeoutMs} ms.`,
      );
    throw unreachable(proxy, error as Error);
  }
}

function refusal({ place }: Proxy, status: number, target = ''): ProxyError {
  if (status === 407)
    return new ProxyError(
      `The proxy ${place} requires a login (407). Set its user and password in delivery.proxy.`,
    );
  const why = [502, 503, 504].includes(status)
    ? '; it could not reach the host'
    : status === 403
      ? '; its rules do not allow it'
      : '';
  const answer = `${status} ${STATUS_CODES[status] ?? ''}`.trim();
  return new ProxyError(
    `The proxy ${place} answered ${answer} when asked for a connection to ${target}${why}.`,
  );
}

function unreachable({ place }: Proxy, error: Error): ProxyError {
  const timedOut =
    (error as NodeJS.ErrnoException).code === 'UND_ERR_CONNECT_TIMEOUT'
      ? 'no answer in time'
      : undefined;
  return new ProxyError(
    `The proxy ${place} cannot be reached: ${networkReason(error) ?? timedOut ?? error.message}.`,
    { cause: error },
  );
}

/** Remembers accepted hosts for `CHECKED_MS`. */
function remembering(check: (host: string) => Promise<void>): (host: string) => Promise<void> {
  const passed = new Map<string, number>();
  return async (host) => {
    const nowMs = performance.now();
    if (nowMs - (passed.get(host) ?? -Infinity) < CHECKED_MS) return;
    await check(host);
    if (passed.size >= CHECKED_HOSTS) passed.clear();
    passed.set(host, nowMs);
  };
}
