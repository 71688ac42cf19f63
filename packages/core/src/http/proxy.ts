import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { Agent, buildConnector, Pool, type Dispatcher } from 'undici';
import { networkReason } from '../errors/connection-errors.js';
import { watchedConnector } from './connection-use.js';

/** The proxy fails, or refuses the request. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
}

export interface ProxyOptions {
  /** `http://` or `https://`, with a user and password if the proxy requires a login. */
  readonly url: string;
  /** Called for each new connection, for plain http at most every ten seconds per host; rejects for a host that may not be reached. */
  readonly check?: (host: string) => Promise<void>;
  /** Certificate authorities of the hosts and of the proxy. */
  readonly secureContext?: SecureContext | undefined;
  /** Of the hosts alone, in its place. */
  readonly hostContext?: SecureContext | undefined;
  readonly connectTimeoutMs: number;
  /** Options of the connection pools. */
  readonly pooling?: Omit<Agent.Options, 'connect'>;
}

/** `destroy` ends requests in flight, those that wait for the proxy included. */
export type RequestDispatcher = Pick<Dispatcher, 'dispatch'> & {
  /** Ends when the requests in flight have ended; it takes no more. */
  close(): Promise<void>;
  destroy(): Promise<void>;
};

/** A proxy as a dispatcher of undici, and the connections that it is made of. */
export interface OpenProxy extends RequestDispatcher {
  /** Header fields for each plain request. */
  readonly login: Readonly<Record<string, string>>;
  /** A connection to the proxy, or through it to a host. Rejects with `ProxyError`. */
  connect(to?: URL): Promise<Socket>;
}

interface Proxy {
  /** Host and port, for a person. */
  readonly place: string;
  readonly login: Readonly<Record<string, string>>;
}

/** How long the check of a host counts for plain requests, whose connections to the proxy are reused for any host. */
const CHECKED_MS = 10_000;
const CHECKED_HOSTS = 1_000;

/**
 * A dispatcher of a client's own, through the proxy if there is one. A client with the pools of `fetch` or an agent of Node needs none: see `proxyProcess`.
 * @param options.direct makes the connections without a proxy
 */
export function dispatcherOf({
  proxy,
  direct,
  ...options
}: Omit<ProxyOptions, 'url'> & { proxy: string | undefined; direct?: buildConnector.connector }): RequestDispatcher {
  if (proxy !== undefined) return openProxy({ ...options, url: proxy });
  return new Agent({ ...options.pooling, ...(direct ? { connect: direct } : {}) });
}

/**
 * Sends requests through an HTTP proxy: https through a CONNECT tunnel per connection, plain http with the whole URL as the request target,
 * as proxies allow by default. Connections are pooled. The proxy resolves host names.
 *
 * undici's ProxyAgent is not used: it has no check per host, no timeout for CONNECT, and one error for every status of the proxy.
 */
export function openProxy(options: ProxyOptions): OpenProxy {
  const { url, check = () => Promise.resolve(), secureContext, hostContext = secureContext, connectTimeoutMs, pooling = {} } = options;
  const { protocol, origin, hostname, port, username, password } = new URL(url);
  const credentials = [username, password].map(decoded).join(':');
  const proxy: Proxy = {
    place: `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`,
    login: credentials === ':' ? {} : { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` },
  };
  const connectorWith = (context: SecureContext | undefined) =>
    watchedConnector(buildConnector({ timeout: connectTimeoutMs, keepAlive: true, ...(context ? { secureContext: context } : {}) }));
  const connect = connectorWith(secureContext);
  const connectThrough = hostContext === secureContext ? connect : connectorWith(hostContext);
  const connectToProxy: buildConnector.connector = (options, callback) =>
    connect(options, (...result) => (result[0] ? callback(unreachable(proxy, result[0]), null) : callback(null, result[1])));
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
      const given = Array.isArray(options.headers) ? options.headers : Object.entries(options.headers ?? {}).flat();
      const headers = [...(given as string[]), 'host', target.host, ...Object.entries(proxy.login).flat()];
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
            connectToProxy({ hostname, protocol, port: port || (protocol === 'https:' ? '443' : '80') }, (error, socket) =>
              error ? reject(error) : resolve(socket),
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

/** A host without the brackets of an IPv6 address. */
function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

/** A password with a percent sign that is not encoded is taken as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Turns a 407 into an error: it is the proxy's answer, not the host's. */
function failingAt407(handler: Dispatcher.DispatchHandler, proxy: Proxy): Dispatcher.DispatchHandler {
  let refused = false;
  return {
    onConnect: (abort) => handler.onConnect?.(abort),
    onBodySent: (...sent) => handler.onBodySent?.(...sent),
    onHeaders: (status, ...rest) => {
      refused = status === 407;
      return refused || (handler.onHeaders?.(status, ...rest) ?? true);
    },
    onData: (chunk) => refused || (handler.onData?.(chunk) ?? true),
    onComplete: (trailers) => (refused ? handler.onError?.(refusal(proxy, 407)) : handler.onComplete?.(trailers)),
    onError: (error) => handler.onError?.(error),
  };
}

/** https://www.rfc-editor.org/rfc/rfc9110#name-connect */
async function openTunnel(pool: Pool, proxy: Proxy, target: string, timeoutMs: number): Promise<Socket> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const { statusCode, socket } = await pool.connect({ path: target, headers: { host: target, ...proxy.login }, signal });
    if (statusCode >= 200 && statusCode < 300) return socket as Socket;
    socket.on('error', () => undefined).destroy();
    throw refusal(proxy, statusCode, target);
  } catch (error) {
    if (error instanceof ProxyError) throw error;
    if (signal.aborted) throw new ProxyError(`The proxy ${proxy.place} opened no connection to ${target} within ${timeoutMs} ms.`);
    throw unreachable(proxy, error as Error);
  }
}

function refusal({ place }: Proxy, status: number, target = ''): ProxyError {
  if (status === 407) return new ProxyError(`The proxy ${place} requires a login (407). Set its user and password in delivery.proxy.`);
  const why = [502, 503, 504].includes(status) ? '; it could not reach the host' : status === 403 ? '; its rules do not allow it' : '';
  const answer = `${status} ${STATUS_CODES[status] ?? ''}`.trim();
  return new ProxyError(`The proxy ${place} answered ${answer} when asked for a connection to ${target}${why}.`);
}

function unreachable({ place }: Proxy, error: Error): ProxyError {
  const timedOut = (error as NodeJS.ErrnoException).code === 'UND_ERR_CONNECT_TIMEOUT' ? 'no answer in time' : undefined;
  return new ProxyError(`The proxy ${place} cannot be reached: ${networkReason(error) ?? timedOut ?? error.message}.`, { cause: error });
}

/** The check, which counts for a while once a host has passed it. */
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
