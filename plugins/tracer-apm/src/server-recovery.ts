import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';

const RESPONSE = 'http.client.response.finish';

/** Watches for the next request that the server accepts: the agent reports only failures. Costs nothing until `watch` is called. */
export function serverRecovery(server: URL, recovered: () => void): { watch(): void; stop(): void } {
  let isWatching = false;
  const stop = () => {
    if (isWatching) unsubscribe(RESPONSE, look);
    isWatching = false;
  };
  const look = (message: unknown) => {
    const { request, response } = message as { request: ClientRequest; response: IncomingMessage };
    if (request.getHeader('host') !== server.host || !request.path.includes('/intake/') || (response.statusCode ?? 500) >= 300) return;
    stop();
    recovered();
  };
  return {
    watch: () => {
      if (!isWatching) subscribe(RESPONSE, look);
      isWatching = true;
    },
    stop,
  };
}
