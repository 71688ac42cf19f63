import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Server as NetServer } from 'node:net';
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

/**
 * Returns the port. Adds the security headers to every response. On `::`, also listens on IPv4, or
 * on it alone if IPv6 is off.
 * @throws GatewayError `port_in_use` or `port_refused`, which name the settings
 */
export function listen(
  server: Server,
  place: Parameters<typeof explainListenError>[1],
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.prependListener('request', (request, response) => {
      response.setHeaders(request.socket instanceof TLSSocket ? TLS_HEADERS : HEADERS);
    });
    server.headersTimeout = HEADERS_TIMEOUT_MS;
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    server.timeout = STILL_MS;
    bind(server, place).then(
      () => resolve((server.address() as AddressInfo).port),
      (error) => reject(explainListenError(error, place)),
    );
  });
}

/** On `::`, falls back to `0.0.0.0` if IPv6 is off. */
export async function bind(
  server: NetServer,
  { bind: host, port, exclusive }: { bind: string; port: number; exclusive?: boolean },
): Promise<void> {
  const to = (host: string) => once(server.listen({ host, port, exclusive }), 'listening');
  try {
    await to(host);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (host !== '::' || !/^(EAFNOSUPPORT|EADDRNOTAVAIL)$/.test(code)) throw error;
    await to('0.0.0.0');
  }
}

/** Each connection closes after its next response, so that clients find another process. */
export function leaveConnections(server: Server): void {
  server.prependListener('request', (_request, response) =>
    response.setHeader('connection', 'close'),
  );
}

/** Closes idle connections, and after `seconds` aborts requests in flight. */
export function closeListener(server: Server, { seconds = CLOSE_SECONDS } = {}): Promise<void> {
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
