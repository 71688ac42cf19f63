import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { explainListenError } from '../errors/connection-errors.js';

/** Grace period for requests in flight on close. */
const CLOSE_SECONDS = 10;
const HEADERS_TIMEOUT_MS = 10_000;
/** Connections without traffic are closed, such as those of clients that do not read. */
const STILL_MS = 120_000;

/**
 * Defaults of every response, because a browser should not run, embed or store any.
 * https://cheatsheetseries.owasp.org/cheatsheets/REST_Security_Cheat_Sheet.html#security-headers
 */
const HEADERS = new Map([
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
  ['cache-control', 'no-store'],
]);
/** Effective only over TLS: https://www.rfc-editor.org/rfc/rfc6797 */
const TLS_HEADERS = new Map([...HEADERS, ['strict-transport-security', 'max-age=31536000']]);

/**
 * Listens, with the security headers, and returns the port.
 * @throws GatewayError `port_in_use`, `port_refused`, which name the settings
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
    server.timeout = STILL_MS;
    server.once('error', (error) => reject(explainListenError(error, place)));
    server.listen(place.port, place.bind, () => resolve((server.address() as AddressInfo).port));
  });
}

/** Closes each connection after its next response, so that clients find another process. */
export function leaveConnections(server: Server): void {
  server.prependListener('request', (_request, response) =>
    response.setHeader('connection', 'close'),
  );
}

/** Accepts no more connections, closes idle ones, and aborts requests after the deadline. */
export function closeListener(server: Server, { seconds = CLOSE_SECONDS } = {}): Promise<void> {
  return new Promise((resolve) => {
    const impatient = setTimeout(() => server.closeAllConnections(), seconds * 1000);
    server.close(() => {
      clearTimeout(impatient);
      resolve();
    });
    server.closeIdleConnections();
  });
}
