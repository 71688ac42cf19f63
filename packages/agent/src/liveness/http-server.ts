import type { Config } from '@gateway/core/config';
import { metricsResponse, sendMetrics, serveMetrics } from '@gateway/core/exposition';
import { closeListener, listen } from '@gateway/core/http';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { readySentence, VERSION, type Health } from '@gateway/core/process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/** What an agent cannot work without. A source that cannot be read is told by its component and stops nobody else. */
const NEEDED = 'postgres';

/** Seconds that a request under way has to end when the agent has drained. */
const CLOSE_SECONDS = 1;

/**
 * The data plane's HTTP: `GET /healthz` (alive; with `?ready` what it depends on) and `GET /metrics`, the latter also on an address of its own when the
 * settings name one.
 *
 * @throws GatewayError `port_in_use`, `port_refused`
 */
export async function serveHttp({
  config,
  health,
  plugins,
  log,
  isStarting,
  isDraining,
}: {
  config: Config;
  health: Health;
  plugins: ActivatedPlugins;
  log: Log;
  /** The sources are not read yet. */
  isStarting: () => boolean;
  isDraining: () => boolean;
}): Promise<{ port: number; close(): Promise<void> }> {
  const metrics = metricsResponse({ config, plugins, log });
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET');
      return send(response, 405, 'application/json', json({ status: false, message: 'Only GET is answered here.', data: null }));
    }
    // Not as something relative to a base, where `//` would begin a host.
    const url = new URL(`http://agent${request.url ?? '/'}`);
    if (url.pathname === '/healthz') {
      const asksReady = url.searchParams.has('ready');
      const ready = !isStarting() && !isDraining() && !health.components.some(({ name, state }) => name === NEEDED && state === 'down');
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
        json({ status: ready || !asksReady, message: readySentence(ready, isDraining(), data.components), data }),
      );
    }
    if (url.pathname === '/metrics') return sendMetrics(request, response, metrics);
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
  const listening = await listen(server, { port, bind, setting: 'server.http.agent_port (AGENT_PORT)', flag: '--port' });
  const close = () => closeListener(server, { seconds: CLOSE_SECONDS });
  const { pulladdr } = config.agent;
  if (pulladdr === undefined) return { port: listening, close };
  const place = { address: pulladdr, key: 'agent.pulladdr', env: 'GATEWAY_AGENT_PULLADDR' };
  const apart = await serveMetrics(place, metrics).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    port: listening,
    close: async () => {
      await Promise.all([close(), apart.close()]);
    },
  };
}

function json(value: unknown): string {
  return JSON.stringify(value);
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
}
