import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { createServer } from 'node:net';
import { explainListenError } from '@gateway/core/errors';
import { isObject } from '@gateway/core/json';
import { metricsPlace } from '@gateway/core/exposition';
import type { Config } from '@gateway/core/config';
import { failed, failedBy, ok, skipped, type Finding } from './finding.js';

const ANSWER_MS = 2_000;

interface Place {
  readonly check: string;
  readonly bind: string;
  readonly port: number;
  readonly setting: string;
  readonly flag: string;
  /** The process that listens there. */
  readonly owner: 'server' | 'agent';
  readonly tls: boolean;
  /** Where a process of ours can be told from others. */
  readonly path: string;
}

/** The places where server and agent listen. */
export function placesOf({ server: { http, pulladdr }, agent: { pulladdr: agentPulladdr } }: Config): Place[] {
  const { bind, port, agent_port: agentPort, ssl } = http;
  const common = { bind, flag: '--port', path: '/healthz' };
  return [
    { ...common, check: 'server port', port, setting: 'server.http.port (PORT)', owner: 'server', tls: ssl },
    { ...common, check: 'agent port', port: agentPort, setting: 'server.http.agent_port (AGENT_PORT)', owner: 'agent', tls: false },
    ...metricsPlaces('server', 'metrics port', pulladdr, { key: 'server.pulladdr', env: 'GATEWAY_PULLADDR' }),
    ...metricsPlaces('agent', 'metrics port of the agent', agentPulladdr, { key: 'agent.pulladdr', env: 'GATEWAY_AGENT_PULLADDR' }),
  ];
}

function metricsPlaces(owner: Place['owner'], check: string, address: string | undefined, named: { key: string; env: string }): Place[] {
  return address === undefined ? [] : [{ ...metricsPlace({ address, ...named }), check, owner, tls: false, path: '/metrics' }];
}

/** Whether a process of ours may listen there, or does. It is listened there for a moment. */
export async function checkPort(place: Place): Promise<Finding> {
  const { check, bind, port, owner } = place;
  if (port === 0) return skipped(check, 'the system picks one');
  const probe = createServer();
  try {
    probe.listen({ host: bind, port, exclusive: true });
    await once(probe, 'listening');
    await new Promise((resolve) => probe.close(resolve));
    return ok(check, `${port} on ${bind} is free`);
  } catch (error) {
    const explained = explainListenError(error, place);
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') return failedBy(check, explained, `check ${place.setting}`);
    const found = await whoListens(place);
    if (found === owner) return ok(check, `${port} on ${bind}: our ${owner} listens there`);
    const who = found === 'stranger' ? 'something that is not a gateway' : `our ${found}`;
    return failed(check, `${port} on ${bind} is taken by ${who}`, (explained as { fix?: string }).fix ?? `check ${place.setting}`);
  }
}

async function whoListens({ bind, port, tls, path, owner }: Place): Promise<'server' | 'agent' | 'stranger'> {
  try {
    const { status, body } = await ask({ host: reachable(bind), port, tls, path });
    // Metrics are text, and tell nothing of who exposes them; without the token that may be asked for they are not even shown.
    if (path === '/metrics') return status === 200 || status === 401 ? owner : 'stranger';
    const { data } = JSON.parse(body) as { data?: unknown };
    if (!isObject(data) || typeof data['version'] !== 'string' || !Array.isArray(data['plugins'])) return 'stranger';
    return Array.isArray(data['components']) ? 'agent' : 'server';
  } catch {
    return 'stranger';
  }
}

/** Where a process that listens on all addresses can be asked. */
function reachable(bind: string): string {
  return bind === '0.0.0.0' ? '127.0.0.1' : bind === '::' ? '::1' : bind;
}

async function ask({
  tls,
  ...place
}: {
  host: string;
  port: number;
  tls: boolean;
  path: string;
}): Promise<{ status: number; body: string }> {
  const signal = AbortSignal.timeout(ANSWER_MS);
  // Its certificate is for its public name, and it is asked nothing that is secret.
  const request = tls ? httpsRequest({ ...place, signal, rejectUnauthorized: false }) : httpRequest({ ...place, signal });
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body = (body + text).slice(0, 1_000_000)));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      response.on('error', reject);
    });
    request.end();
  });
}
