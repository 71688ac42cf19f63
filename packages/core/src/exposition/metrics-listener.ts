import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeListener, listen } from '../http/listen.js';
import type { metricsResponse } from './metrics-response.js';

type Answer = ReturnType<typeof metricsResponse>;

export interface MetricsPlace {
  /** `<host>:<port>`, `[<IPv6>]:<port>`, or `:<port>` for every address. */
  readonly address: string;
  /** Its setting: `server.pulladdr`, `agent.pulladdr`. */
  readonly key: string;
  readonly env: string;
}

/** Starts a listener that serves only /metrics, so that scrapers need no access to anything else. Throws as `listen` does. */
export async function serveMetrics(place: MetricsPlace, answer: Answer): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    respond(request, response, answer).catch(() => response.destroy());
  });
  return { port: await listen(server, metricsPlace(place)), close: () => closeListener(server, { seconds: 1 }) };
}

/** An address as `listen` takes it, with the settings for its errors. */
export function metricsPlace({ address, key, env }: MetricsPlace) {
  const [, bind = '', port = '0'] = /^(.*):(\d+)$/.exec(address) ?? [];
  return {
    port: Number(port),
    bind: bind.replace(/^\[(.*)\]$/, '$1') || '0.0.0.0',
    setting: `${key} (${env})`,
    flag: '--pulladdr',
    addressSetting: `--pulladdr or ${key}`,
  };
}

/** Answers a request for metrics; Node omits the body for HEAD. */
export async function sendMetrics(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  const { status, headers, body } = await answer(request);
  response.writeHead(status, { ...headers, 'content-length': body.length }).end(body);
}

async function respond(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  const { method, url = '/' } = request;
  const plain = (status: number, text: string, headers = {}) =>
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(`${text}\n`);
  if (url.replace(/\?.*$/, '') !== '/metrics') return void plain(404, 'Only /metrics is served here.');
  if (method !== 'GET' && method !== 'HEAD') return void plain(405, 'Only GET is allowed here.', { allow: 'GET' });
  return sendMetrics(request, response, answer);
}
