import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { Agent, Pool, type buildConnector, type Dispatcher } from 'undici';
import { networkReason } from '../errors/connection-errors.js';
import { plainConnector } from './connect-any.js';
import { proxyExceptions } from './proxy-exceptions.js';

/** The proxy fails or rejects the request. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
}

interface ProxyOptions {
  /** With credentials if the proxy requires them. */
  readonly url: string;
  /**
   * Rejects if the host is forbidden. Called for each connection; for plain HTTP, at most once
   * every ten seconds per host.
   */
  readonly check?: (host: string) => Promise<void>;
  /** For the proxy and the hosts. */
  readonly secureContext?: SecureContext | undefined;
  /** Default: `secureContext`. */
  readonly hostContext?: SecureContext | undefined;
  readonly connectTimeoutMs: number;
  readonly pooling?: Omit<Agent.Options, 'connect'>;
}

/** `close` waits for requests in flight; `destroy` aborts them. */
export type RequestDispatcher = Pick<Dispatcher, 'dispatch'> & {
  close(): Promise<void>;
  destroy(): Promise<void>;
};

export interface OpenProxy extends RequestDispatcher {
  readonly login: Readonly<Record<string, string>>;
  /** Connects to the proxy or, with `to`, through it to that host. Rejects with `ProxyError`. */
  connect(to?: URL): Promise<Socket>;
}

interface Proxy {
  readonly place: string;
  readonly login: Readonly<Record<string, string>>;
}

/**
 * The longest idle time that a server's `Keep-Alive` may request: a connection closes by age only
 * when used.
 */
const IDLE_MAX_MS = 60_000;
/**
 * With plain HTTP, one proxy connection serves any host, so each is checked again after this time.
 */
const CHECKED_MS = 10_000;
const CHECKED_HOSTS = 1_000;

/**
 * Clients based on `fetch` or Node.js agents do not need a dispatcher, because `proxyProcess`
 * applies to them.
 * @param options.direct the connector used without a proxy
 */
export function dispatcherOf({
  proxy,
  noProxy = [],
  direct,
  ...options
}: Omit<ProxyOptions, 'url'> & {
  proxy: string | undefined;
  /** `delivery.no_proxy`. */
  noProxy?: readonly string[] | undefined;
  direct?: buildConnector.connector;
}): RequestDispatcher {
  const connect =
    direct ??
    plainConnector(options.connectTimeoutMs, options.hostContext ?? options.secureContext);
  const agent = openAgent({ ...options.pooling, connect });
  if (proxy === undefined) return agent;
  const isDirect = proxyExceptions(noProxy);
  const through = openProxy({ ...options, url: proxy });
  return {
    dispatch: (request, handler) =>
      (isDirect(new URL(String(request.origin))) ? agent : through).dispatch(request, handler),
    close: async () => void (await Promise.all([agent.close(), through.close()])),
    destroy: async () => void (await Promise.all([agent.destroy(), through.destroy()])),
  };
}

export function openAgent(options: Agent.Options): Agent {
  return new Agent({
    keepAliveMaxTimeout: IDLE_MAX_MS,
    factory: (origin, options) => new OriginPool(origin, options),
    ...options,
  });
}

/**
 * Reports nothing once it is closed. undici's Agent, which closes a pool without connections, would
 * count the report towards the next pool of the origin, and so close each pool after one request.
 */
class OriginPool extends Pool {
  override emit(event: string | symbol, ...args: unknown[]): boolean {
    if (this.closed && event === 'disconnect') return false;
    return Reflect.apply(super.emit, this, [event, ...args]) as boolean;
  }
}

/**
 * HTTPS goes through pooled CONNECT tunnels, plain HTTP has absolute URLs. The proxy resolves
 * names. undici's ProxyAgent cannot check hosts, has no CONNECT timeout, and throws the same error
 * for all statuses.
 */
export function openProxy(options: ProxyOptions): OpenProxy {
  const {
    url,
    check = () => Promise.resolve(),
    secureContext,
    hostContext = secureContext,
    connectTimeoutMs,
  } = options;
  const { pooling } = options;
  const { protocol, origin, hostname, port, username, password } = new URL(url);
  const credentials = [username, password].map(decoded).join(':');
  const proxy: Proxy = {
    place: `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`,
    login:
      credentials === ':'
        ? {}
        : { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` },
  };
  const connect = plainConnector(connectTimeoutMs, secureContext);
  const connectThrough =
    hostContext === secureContext ? connect : plainConnector(connectTimeoutMs, hostContext);
  const connectToProxy: buildConnector.connector = (options, callback) =>
    connect(options, (...result) =>
      result[0] ? callback(unreachable(proxy, result[0]), null) : callback(null, result[1]),
    );
  const pool = new Pool(origin, {
    keepAliveMaxTimeout: IDLE_MAX_MS,
    ...pooling,
    connect: connectToProxy,
  });
  const tunnels = openAgent({
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
      // A proxy requires the absolute URL:
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
        .then(() => pool.dispatch(absolute, failingOwn(handler, proxy, target.host)))
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

/** Malformed percent-encoding is returned unchanged. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Turns a response of the proxy itself into an error, as far as it can be told from the host's. */
function failingOwn(
  handler: Dispatcher.DispatchHandler,
  proxy: Proxy,
  target: string,
): Dispatcher.DispatchHandler {
  let refused = false;
  let answered = 0;
  return {
    onConnect: (abort) => handler.onConnect?.(abort),
    onBodySent: (...sent) => handler.onBodySent?.(...sent),
    onHeaders: (status, headers, ...rest) => {
      answered = status;
      refused = status === 407 || (status >= 400 && isOwn(headers));
      return refused || (handler.onHeaders?.(status, headers, ...rest) ?? true);
    },
    onData: (chunk) => refused || (handler.onData?.(chunk) ?? true),
    onComplete: (trailers) =>
      refused
        ? handler.onError?.(refusal(proxy, answered, target))
        : handler.onComplete?.(trailers),
    onError: (error) => handler.onError?.(error),
  };
}

/**
 * Squid and RFC 9209 (https://www.rfc-editor.org/rfc/rfc9209#section-2.1.1) mark a proxy's own
 * responses; other proxies name themselves.
 */
function isOwn(headers: readonly Buffer[]): boolean {
  return headers.some((bytes, k) => {
    if (k % 2 === 1) return false;
    const value = headers[k + 1]!.toString('latin1');
    switch (bytes.toString('latin1').toLowerCase()) {
      case 'x-squid-error':
        return true;
      case 'proxy-status':
        return /;\s*error=/i.test(value);
      case 'server':
        return /^(tinyproxy|privoxy|mitmproxy)\b/i.test(value);
      default:
        return false;
    }
  });
}

/** CONNECT: https://www.rfc-editor.org/rfc/rfc9110#name-connect */
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

/** Caches accepted hosts for `CHECKED_MS`. */
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
