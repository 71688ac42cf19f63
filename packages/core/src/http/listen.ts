import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { explainListenError } from '../errors/connection-errors.js';

/** Seconds that requests in flight have to end when a listener closes. */
const CLOSE_SECONDS = 10;
const HEADERS_TIMEOUT_MS = 10_000;
/** A connection on which nothing moves for so long is closed, as when a client does not read its answer. */
const STILL_MS = 120_000;

/**
 * On every answer; a listener may replace them. None is made for a browser: it must run, embed and store nothing of them.
 * https://cheatsheetseries.owasp.org/cheatsheets/REST_Security_Cheat_Sheet.html#security-headers
 */
const HEADERS = new Map([
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
  ['cache-control', 'no-store'],
]);
/** For a year; only over TLS, where it counts. https://www.rfc-editor.org/rfc/rfc6797 */
const TLS_HEADERS = new Map([...HEADERS, ['strict-transport-security', 'max-age=31536000']]);

/** Listens, with the security headers on every answer; returns the port. Throws GatewayError `port_in_use`, `port_refused`, which name the settings. */
export function listen(server: Server, place: Parameters<typeof explainListenError>[1]): Promise<number> {
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

/** Accepts no new connections, closes idle ones, and ends requests that are still in flight after the deadline. */
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
