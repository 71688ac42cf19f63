import { createServer, type RequestListener, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Config } from '@gateway/core/config';
import { listen, type HttpListener } from '@gateway/core/http';
import type { Log } from '@gateway/core/logging';
import { largestRequest } from './http/body.js';
import { BODY_BYTES_PER_SECOND } from './http/body-room.js';
import { reloadCertificates } from './tls.js';

/** For a request without its body. */
const REQUEST_TIMEOUT_MS = 60_000;
const TIMEOUTS_CHECKED_MS = 5_000;

/** A response gets its socket once the previous ones have ended. */
export function inTurn(app: RequestListener): RequestListener {
  return (request, response) => {
    if (response.socket) app(request, response);
    else response.once('socket', () => app(request, response));
  };
}

/** Allows bodies as large as the settings permit. */
export function listenerOptions(config: Config): ServerOptions {
  const bodySeconds =
    config.server.http.body_timeout_seconds +
    Math.ceil(largestRequest(config) / BODY_BYTES_PER_SECOND);
  return {
    // Applies to bodies that no route reads. Other slow bodies are rejected earlier, with a
    // response.
    requestTimeout: REQUEST_TIMEOUT_MS + 1000 * bodySeconds,
    connectionsCheckingInterval: TIMEOUTS_CHECKED_MS,
  };
}

/** Changed certificate files are reloaded. */
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
): Promise<HttpListener> {
  const { port, bind } = config.server.http;
  const place = { port, bind, setting: 'server.http.port (PORT)', flag: '--port' };
  const options = listenerOptions(config);
  if (!tls) return listen(createServer(options, app), place);
  const server = createTlsServer({ ...options, ...tls.inUse.options }, app);
  const listener = await listen(server, place);
  const stopReloading = reloadCertificates(server, { ...tls, log });
  return {
    ...listener,
    close() {
      stopReloading();
      return listener.close();
    },
  };
}
