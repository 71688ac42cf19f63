import type { Config } from '@gateway/core/config';
import {
  admitsToDetails,
  metricsResponse,
  sendMetrics,
  serveMetrics,
} from '@gateway/core/exposition';
import { closeListener, leaveConnections, listen } from '@gateway/core/http';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { Intake } from '@gateway/ingest/intake';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { readySentence, statesOnly, VERSION, type Health } from '@gateway/core/process';
import { settles } from '@gateway/plugin';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/**
 * The only dependencies required for readiness: the databases of the shards. One that is away stops
 * its projects alone, so the agent is ready while another answers. A failing source merely degrades
 * health.
 */
const REQUIRED = /^(postgres|shard)\b/;

const CLOSE_SECONDS = 1;
/** The grace period for requests that bring events, as in a server. */
const DRAIN_MS = 10_000;
const RETRY_AFTER_SECONDS = 1;
const PATHS = ['/healthz', '/metrics'];

/**
 * Serves `GET /healthz`, `GET /metrics` (optionally on a second address), and the intake.
 *
 * @throws GatewayError `port_in_use` or `port_refused` if it cannot listen
 */
export async function serveHttp(
  agent: { readonly isStarting: boolean; readonly draining: boolean },
  {
    config,
    health,
    plugins,
    log,
    intake,
  }: {
    config: Config;
    health: Health;
    plugins: ActivatedPlugins;
    log: Log;
    intake: Intake | undefined;
  },
): Promise<{ port: number; leave(): void; drain(): Promise<void>; close(): Promise<void> }> {
  const metrics = metricsResponse({ config, plugins, log });

  const seesDetails = admitsToDetails(config);
  let isLeaving = false;
  let isDraining = false;
  /** Responses to requests that bring events and are not answered yet. */
  const bringing = new Set<ServerResponse>();
  const healthz = (asksReady: boolean, isDetailed: boolean) => {
    health.reportSecrets();
    const { state, components } = health;
    const draining = agent.draining || isLeaving;
    const required = components.filter(({ name }) => REQUIRED.test(name));
    const ready =
      !agent.isStarting &&
      !draining &&
      (required.length === 0 || required.some((it) => it.state !== 'down'));
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
  const listening = await listen(server, {
    port,
    bind,
    setting: 'server.http.agent_port (AGENT_PORT)',
    flag: '--port',
  });
  const close = () => closeListener(server, { seconds: CLOSE_SECONDS });
  const leave = () => {
    isLeaving = true;
    leaveConnections(server);
  };
  /** Refuses further events, and waits for requests whose body still arrives. */
  const drain = async () => {
    isLeaving = isDraining = true;
    const answered = [...bringing].map((it) => new Promise((done) => it.once('close', done)));
    await settles(Promise.all(answered), DRAIN_MS);
  };
  const { pulladdr } = config.agent;
  if (pulladdr === undefined) return { port: listening, leave, drain, close };
  const place = { address: pulladdr, key: 'agent.pulladdr', env: 'GATEWAY_AGENT_PULLADDR' };
  const apart = await serveMetrics(place, metrics).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    port: listening,
    leave,
    drain,
    close: () => Promise.all([close(), apart.close()]).then(() => undefined),
  };
}
