import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';

const ANSWERED = 'http.client.response.finish';

/**
 * Looks out for the next time that the server takes what it is sent: the agent tells of failures alone. Costs nothing until it is told to watch.
 */
export function onceTaken(server: URL, taken: () => void): { watch(): void; stop(): void } {
  let watching = false;
  const stop = () => {
    if (watching) unsubscribe(ANSWERED, look);
    watching = false;
  };
  const look = (message: unknown) => {
    const { request, response } = message as { request: ClientRequest; response: IncomingMessage };
    if (request.getHeader('host') !== server.host || !request.path.includes('/intake/') || (response.statusCode ?? 500) >= 300) return;
    stop();
    taken();
  };
  return {
    watch: () => {
      if (!watching) subscribe(ANSWERED, look);
      watching = true;
    },
    stop,
  };
}
