import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { Agent, buildConnector, Pool, type Dispatcher } from 'undici';
import { networkReason } from '../errors/connection-errors.js';

/** The proxy itself fails, or refuses what is asked of it. */
export class ProxyError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ProxyError';
  }
}

export interface ProxyOptions {
  /** `http://` or `https://`, with a user and password where the proxy wants a login. */
  readonly url: string;
  /** Asked before the proxy is, once for each connection or for ten seconds; rejects for a host that may not be reached. */
  readonly check?: (host: string) => Promise<void>;
  /** Authorities of the hosts that are reached, and of the proxy. */
  readonly secureContext?: SecureContext | undefined;
  readonly connectTimeoutMs: number;
  /** Of the pools of connections. */
  readonly pooling?: Omit<Agent.Options, 'connect'>;
}

/** What requests are sent over. */
export interface RequestDispatcher {
  /** @param options headers are names and values in turn */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean;
  /** Ends what is under way, also what waits for the proxy. */
  destroy(): Promise<void>;
}

interface Proxy {
  readonly url: URL;
  /** Host and port, for a person. */
  readonly place: string;
  readonly authorization: string | undefined;
}

/** For how long a host that was looked up for a plain request is not looked up again. */
const LOOKED_UP_MS = 10_000;
const LOOKED_UP_HOSTS = 1_000;

/**
 * Sends requests through an HTTP proxy: for https it opens a tunnel with CONNECT for each connection, plain http it is asked for by the whole URL, as proxies
 * allow by default. Connections are kept and used again. The proxy looks every name up for itself.
 */
export function proxyDispatcher({
  url,
  check = () => Promise.resolve(),
  secureContext,
  connectTimeoutMs,
  pooling = {},
}: ProxyOptions): RequestDispatcher {
  const proxy = proxyOf(url);
  const context = secureContext ? { secureContext } : {};
  const closing = new AbortController();
  const upgrade = buildConnector({ timeout: connectTimeoutMs, keepAlive: true, ...context });
  const tunnels = new Agent({
    ...pooling,
    connect: (options, callback) => {
      const host = options.hostname.replace(/^\[|\]$/g, '');
      const target = `${host.includes(':') ? `[${host}]` : host}:${options.port || 443}`;
      check(host)
        .then(() => openTunnel(proxy, target, { ...context, timeoutMs: connectTimeoutMs, signal: closing.signal }))
        .then(
          (httpSocket) => upgrade({ ...options, httpSocket }, callback),
          (error: Error) => callback(error, null),
        );
    },
  });
  const plain = new Pool(proxy.url.origin, {
    ...pooling,
    connect: (options, callback) =>
      upgrade(options, (...result) => (result[0] ? callback(unreachable(proxy, result[0]), null) : callback(null, result[1]))),
  });
  const look = remembering(check);
  return {
    dispatch(options, handler) {
      const origin = new URL(String(options.origin));
      if (origin.protocol === 'https:') return tunnels.dispatch(options, handler);
      look(origin.hostname.replace(/^\[|\]$/g, ''))
        .then(() => plain.dispatch(askedForWhole(options, origin, proxy), refusedLogin(handler, proxy)))
        .catch((error: Error) => handler.onError?.(error));
      return true;
    },
    async destroy() {
      closing.abort();
      await Promise.all([tunnels.destroy(), plain.destroy()]);
    },
  };
}

function proxyOf(text: string): Proxy {
  const url = new URL(text);
  const login = [url.username, url.password].map(decoded).join(':');
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return {
    url,
    place: `${url.hostname}:${port}`,
    authorization: login === ':' ? undefined : `Basic ${Buffer.from(login).toString('base64')}`,
  };
}

/** A password with a percent sign that nobody has encoded is taken as it stands. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** https://www.rfc-editor.org/rfc/rfc9112#name-absolute-form */
function askedForWhole(options: Dispatcher.DispatchOptions, origin: URL, { url, authorization }: Proxy): Dispatcher.DispatchOptions {
  const login = authorization ? ['proxy-authorization', authorization] : [];
  const headers = [...(options.headers as string[]), 'host', origin.host, ...login];
  return { ...options, origin: url.origin, path: origin.origin + options.path, headers };
}

/** A 407 is the proxy's, whoever was asked. */
function refusedLogin(handler: Dispatcher.DispatchHandler, proxy: Proxy): Dispatcher.DispatchHandler {
  let refused = false;
  return {
    onConnect: (abort) => handler.onConnect?.(abort),
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
function openTunnel(
  proxy: Proxy,
  target: string,
  { timeoutMs, ...context }: { timeoutMs: number; signal: AbortSignal; secureContext?: SecureContext },
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { protocol, hostname, port } = proxy.url;
    const request = (protocol === 'https:' ? https : http).request({
      method: 'CONNECT',
      host: hostname.replace(/^\[|\]$/g, ''),
      ...(port ? { port: Number(port) } : {}),
      path: target,
      headers: { host: target, ...(proxy.authorization ? { 'proxy-authorization': proxy.authorization } : {}) },
      agent: false,
      ...context,
    });
    const timer = setTimeout(
      () => request.destroy(new ProxyError(`The proxy ${proxy.place} opened no connection to ${target} within ${timeoutMs} ms.`)),
      timeoutMs,
    );
    request.once('connect', (response, socket, head) => {
      clearTimeout(timer);
      const status = response.statusCode ?? 0;
      if (status >= 200 && status < 300) {
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(refusal(proxy, status, { target, text: response.statusMessage ?? '' }));
    });
    request.once('error', (error) => {
      clearTimeout(timer);
      reject(error instanceof ProxyError ? error : unreachable(proxy, error));
    });
    request.end();
  });
}

function refusal({ place }: Proxy, status: number, asked: { target: string; text: string } = { target: '', text: '' }): ProxyError {
  if (status === 407) return new ProxyError(`The proxy ${place} wants a login (407). Give its user and password in delivery.proxy.`);
  const why = [502, 503, 504].includes(status) ? '; it could not reach the host' : status === 403 ? '; its rules do not allow it' : '';
  return new ProxyError(
    `The proxy ${place} answered ${`${status} ${asked.text}`.trim()} when asked for a connection to ${asked.target}${why}.`,
  );
}

function unreachable({ place }: Proxy, error: Error): ProxyError {
  const timedOut = (error as NodeJS.ErrnoException).code === 'UND_ERR_CONNECT_TIMEOUT' ? 'no answer in time' : undefined;
  return new ProxyError(`The proxy ${place} cannot be reached: ${networkReason(error) ?? timedOut ?? error.message}.`, error);
}

/** The check, with what it found for a while: connections to the proxy are kept, so that nothing else bounds how often it is asked. */
function remembering(check: (host: string) => Promise<void>): (host: string) => Promise<void> {
  const checks = new Map<string, { readonly atMs: number; readonly checked: Promise<void> }>();
  return (host) => {
    const nowMs = performance.now();
    const known = checks.get(host);
    if (known && nowMs - known.atMs < LOOKED_UP_MS) return known.checked;
    if (checks.size >= LOOKED_UP_HOSTS) checks.clear();
    const checked = check(host);
    checks.set(host, { atMs: nowMs, checked });
    return checked;
  };
}
