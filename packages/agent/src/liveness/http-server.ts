import type { Config } from '@gateway/core/config';
import { admitsToDetails, sendMetrics, type MetricsAnswer } from '@gateway/core/exposition';
import { listen, type HttpListener } from '@gateway/core/http';
import { GatewayError } from '@gateway/core/errors';
import type { Intake } from '@gateway/ingest/intake';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { readySentence, statesOnly, VERSION, type Health } from '@gateway/core/process';
import { settles } from '@gateway/plugin';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

const CLOSE_SECONDS = 1;
/** The grace period for requests that bring events, as in a server. */
const DRAIN_MS = 10_000;
const RETRY_AFTER_SECONDS = 1;
const PATHS = ['/healthz', '/metrics'];

interface HttpServer extends HttpListener {
  /** Refuses further events, and waits for requests whose body still arrives. */
  drain(): Promise<void>;
}

/**
 * Serves `GET /healthz`, `GET /metrics` and the intake.
 *
 * @throws GatewayError `port_in_use` or `port_refused` if it cannot listen
 */
export async function serveHttp(
  agent: { readonly isStarting: boolean; readonly draining: boolean; readonly isUsable: boolean },
  {
    config,
    health,
    plugins,
    metrics,
    intake,
  }: {
    config: Config;
    health: Health;
    plugins: Pick<ActivatedPlugins, 'table'>;
    metrics: MetricsAnswer;
    intake: Intake | undefined;
  },
): Promise<HttpServer> {
  const seesDetails = admitsToDetails(config);
  let isLeaving = false;
  let isDraining = false;
  /** Responses to requests that bring events and are not answered yet. */
  const bringing = new Set<ServerResponse>();
  const healthz = (asksReady: boolean, isDetailed: boolean) => {
    health.reportSecrets();
    const { state, components } = health;
    const draining = agent.draining || isLeaving;
    // A failing source merely degrades health.
    const ready = !agent.isStarting && !draining && agent.isUsable;
    const message = readySentence(ready, draining, isDetailed ? components : []);
    const details = isDetailed
      ? { version: VERSION, components, plugins: plugins.table }
      : { components: statesOnly(components) };
    const data = { ready, draining, state, ...details };
    return { code: asksReady && !ready ? 503 : 200, status: ready || !asksReady, message, data };
  };
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const send = (
      { code, ...body }: { code: number; status: boolean; message: string; data: unknown },
      headers = {},
    ) =>
      response
        .writeHead(code, {
          'content-type': 'application/json',
          'cache-control': 'no-store',
          ...headers,
        })
        .end(JSON.stringify(body));
    const url = request.url ?? '/';
    const bringsEvents = intake?.takes(url) ?? false;
    if (bringsEvents && !agent.draining && !isDraining) {
      bringing.add(response);
      response.once('close', () => bringing.delete(response));
      return intake!.handle(request, response);
    }
    // The URL is appended to a host: on its own, a leading `//` would start a host.
    const { pathname, searchParams } = new URL(`http://agent${url}`);
    if (request.method !== 'GET' && request.method !== 'HEAD' && PATHS.includes(pathname))
      return void send(
        { code: 405, status: false, message: 'Only GET is answered here.', data: null },
        { allow: 'GET' },
      );
    if (pathname === '/healthz')
      return void send(healthz(searchParams.has('ready'), seesDetails(request)));
    if (pathname === '/metrics') return sendMetrics(request, response, metrics);
    if (bringsEvents) {
      const { message } = new GatewayError('closing', { retryAfterSeconds: RETRY_AFTER_SECONDS });
      return void send(
        { code: 503, status: false, message, data: null },
        { connection: 'close', 'retry-after': RETRY_AFTER_SECONDS },
      );
    }
    const message = `There is no ${pathname} here; the agent answers /healthz and /metrics${intake ? ', and takes events' : ''}.`;
    send({ code: 404, status: false, message, data: null });
  };

  const server = createServer(
    intake?.listenerOptions ?? {},
    (request, response) => void respond(request, response).catch(() => response.destroy()),
  );
  const { bind, agent_port: port } = config.server.http;
  const place = { port, bind, setting: 'server.http.agent_port (AGENT_PORT)', flag: '--port' };
  const listener = await listen(server, place, CLOSE_SECONDS);
  return {
    ...listener,
    leave() {
      isLeaving = true;
      listener.leave();
    },
    async drain() {
      isLeaving = isDraining = true;
      const answered = [...bringing].map((it) => new Promise((done) => it.once('close', done)));
      await settles(Promise.all(answered), DRAIN_MS);
    },
  };
}
