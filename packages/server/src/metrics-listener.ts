import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Meter } from '@gateway/core';
import { closeListener, listen } from './listen.js';

/**
 * A second listener that answers /metrics alone, so that scrapers need no way to the API.
 *
 * @param address `<host>:<port>`, `[<IPv6>]:<port>`, or `:<port>` for every address
 * @throws GatewayError `port_in_use`, `port_refused`
 */
export async function serveMetrics(address: string, meter: Meter): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    answer(request, response, meter).catch(() => response.destroy());
  });
  return { port: await listen(server, metricsPlace(address)), close: () => closeListener(server) };
}

/** Where an address says to listen, and the settings to name when that does not go. */
export function metricsPlace(address: string) {
  const [, bind = '', port = '0'] = /^(.*):(\d+)$/.exec(address) ?? [];
  return {
    port: Number(port),
    bind: bind.replace(/^\[(.*)\]$/, '$1') || '0.0.0.0',
    setting: 'server.pulladdr (GATEWAY_PULLADDR)',
    flag: '--pulladdr',
    addressSetting: '--pulladdr or server.pulladdr',
  };
}

async function answer({ method, url = '/' }: IncomingMessage, response: ServerResponse, meter: Meter): Promise<void> {
  const plain = (status: number, text: string, headers = {}) =>
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(`${text}\n`);
  if (url.replace(/\?.*$/, '') !== '/metrics') return void plain(404, 'Only /metrics is answered here.');
  if (method !== 'GET' && method !== 'HEAD') return void plain(405, 'Only GET is answered here.', { allow: 'GET' });
  const { contentType, body } = await meter.expose();
  response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
}
