import { createServer, type RequestListener, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Config } from '@gateway/core/config';
import { closeListener, leaveConnections, listen } from '@gateway/core/http';
import type { Log } from '@gateway/core/logging';
import { largestBody } from './http/body.js';
import { BODY_BYTES_PER_SECOND } from './http/body-room.js';
import { reloadCertificates } from './tls.js';

/** Excludes the time for the body. */
const REQUEST_TIMEOUT_MS = 60_000;
const TIMEOUTS_CHECKED_MS = 5_000;

/**
 * Handles a connection's requests in sequence: a response gets its socket after the previous
 * responses.
 */
export function inTurn(app: RequestListener): RequestListener {
  return (request, response) => {
    if (response.socket) app(request, response);
    else response.once('socket', () => app(request, response));
  };
}

/** Accepts bodies as large as the settings allow. */
export function listenerOptions(config: Config): ServerOptions {
  const bodySeconds =
    config.server.http.body_timeout_seconds +
    Math.ceil(largestBody(config) / BODY_BYTES_PER_SECOND);
  return {
    // Limits bodies that no route reads; other slow bodies get an answer earlier.
    requestTimeout: REQUEST_TIMEOUT_MS + 1000 * bodySeconds,
    connectionsCheckingInterval: TIMEOUTS_CHECKED_MS,
  };
}

/** Listens, with TLS if `tls` is given; its files are reloaded when they change. */
export async function serve(
  app: RequestListener,
  {
    config,
    tls,
    log,
  }: {
    config: Config;
    tls: Omit<Parameters<typeof reloadCertificates>[1], 'log'> | undefined;
    log: Log;
  },
): Promise<{ port: number; leave(): void; close(): Promise<void> }> {
  const { http } = config.server;
  const { port, bind } = http;
  const place = { port, bind, setting: 'server.http.port (PORT)', flag: '--port' };
  const options = listenerOptions(config);
  if (!tls) {
    const server = createServer(options, app);
    return {
      port: await listen(server, place),
      leave: () => leaveConnections(server),
      close: () => closeListener(server),
    };
  }
  const server = createTlsServer({ ...options, ...tls.inUse.options }, app);
  const listening = await listen(server, place);
  const stopReloading = reloadCertificates(server, { ...tls, log });
  return {
    port: listening,
    leave: () => leaveConnections(server),
    close: () => {
      stopReloading();
      return closeListener(server);
    },
  };
}
