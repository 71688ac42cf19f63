import { explainListenError, VERSION, type ActivatedPlugins, type Config, type Health } from '@gateway/core';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What an agent cannot work without. A source that cannot be read is told by its component and stops nobody else. */
const NEEDED = 'postgres';

/** The data plane's HTTP: `GET /healthz` (alive; with `?ready` what it depends on) and `GET /metrics`. */
export async function serveHttp({
  config,
  health,
  plugins,
  isDraining,
}: {
  config: Config;
  health: Health;
  plugins: ActivatedPlugins;
  isDraining: () => boolean;
}): Promise<{ port: number; close(): Promise<void> }> {
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://agent');
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return send(response, 405, 'application/json', json({ status: false, message: 'Only GET is answered here.', data: null }));
    if (url.pathname === '/healthz') {
      const asksReady = url.searchParams.has('ready');
      const ready = !isDraining() && !health.components.some(({ name, state }) => name === NEEDED && state === 'down');
      const data = {
        ready,
        draining: isDraining(),
        version: VERSION,
        state: health.state,
        components: health.components,
        plugins: plugins.table,
      };
      return send(
        response,
        asksReady && !ready ? 503 : 200,
        'application/json',
        json({ status: ready || !asksReady, message: ready ? 'ready' : 'not ready', data }),
      );
    }
    if (url.pathname === '/metrics') {
      const { contentType, body } = await plugins.meter.expose();
      return send(response, 200, contentType, body);
    }
    return send(
      response,
      404,
      'application/json',
      json({ status: false, message: `There is no ${url.pathname} here; the agent answers /healthz and /metrics.`, data: null }),
    );
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  const { bind, agent_port: port } = config.server.http;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(explainListenError(error, { port, bind, setting: 'server.http.agent_port (AGENT_PORT)', flag: '--port' })),
    );
    server.listen(port, bind, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function json(value: unknown): string {
  return JSON.stringify(value);
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
}
