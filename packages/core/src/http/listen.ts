import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { explainListenError } from '../errors/connection-errors.js';

/** For requests in flight when the server closes. */
const CLOSE_SECONDS = 10;
const HEADERS_TIMEOUT_MS = 10_000;
/**
 * Longer than the 60 s of common load balancers, which otherwise send a request into a connection
 * that is just being closed, and answer 502.
 */
export const KEEP_ALIVE_MS = 75_000;
/** For a connection without traffic, such as one whose client does not read. */
const STILL_MS = 120_000;

/**
 * Browsers must not run, embed or store responses:
 * https://cheatsheetseries.owasp.org/cheatsheets/REST_Security_Cheat_Sheet.html#security-headers
 */
const HEADERS = new Map([
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
  ['cache-control', 'no-store'],
]);
/**
 * Browsers ignore Strict-Transport-Security over plain HTTP: https://www.rfc-editor.org/rfc/rfc6797
 */
const TLS_HEADERS = new Map([...HEADERS, ['strict-transport-security', 'max-age=31536000']]);

/** A server that listens. */
export interface HttpListener {
  readonly port: number;
  /** Closes each connection after its next response, so that clients find another process. */
  leave(): void;
  /** Stops accepting connections, closes idle ones, and later aborts requests in flight. */
  close(): Promise<void>;
}

/**
 * Adds the security headers to every response. On `::`, also listens on IPv4, or on it alone if IPv6
 * is off.
 *
 * @param closeSeconds the grace period for requests in flight when the server closes
 * @throws GatewayError `port_in_use` or `port_refused`, which name the settings
 */
export async function listen(
  server: Server,
  place: Parameters<typeof explainListenError>[1],
  closeSeconds = CLOSE_SECONDS,
): Promise<HttpListener> {
  server.prependListener('request', (request, response) => {
    response.setHeaders(request.socket instanceof TLSSocket ? TLS_HEADERS : HEADERS);
  });
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.timeout = STILL_MS;
  try {
    await bind(server, place);
  } catch (error) {
    throw explainListenError(error, place);
  }
  return {
    port: (server.address() as AddressInfo).port,
    leave() {
      server.prependListener('request', (_request, response) =>
        response.setHeader('connection', 'close'),
      );
    },
    close: () => closeServer(server, closeSeconds),
  };
}

/** On `::`, falls back to `0.0.0.0` if IPv6 is off. */
async function bind(
  server: Server,
  { bind: host, port }: { bind: string; port: number },
): Promise<void> {
  const to = (host: string) => once(server.listen({ host, port }), 'listening');
  try {
    await to(host);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (host !== '::' || !/^(EAFNOSUPPORT|EADDRNOTAVAIL)$/.test(code)) throw error;
    await to('0.0.0.0');
  }
}

function closeServer(server: Server, seconds: number): Promise<void> {
  return new Promise((resolve) => {
    const impatient = setTimeout(() => server.closeAllConnections(), seconds * 1000);
    server.close(() => {
      clearTimeout(impatient);
      resolve();
    });
    server.closeIdleConnections();
    // Connections of requests in flight close soon after their responses.
    server.keepAliveTimeout = 1;
  });
}
