import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { explainListenError } from '../errors/connection-errors.js';

/** Seconds that requests in flight have to end when a listener closes. */
const CLOSE_SECONDS = 10;

/** Listens; returns the port. Throws GatewayError `port_in_use`, `port_refused`, which name the settings. */
export function listen(server: Server, place: Parameters<typeof explainListenError>[1]): Promise<number> {
  return new Promise((resolve, reject) => {
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
