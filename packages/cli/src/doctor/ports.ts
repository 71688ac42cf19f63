import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { createServer } from 'node:net';
import { json } from 'node:stream/consumers';
import { explainListenError } from '@gateway/core/errors';
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
  readonly tls?: boolean;
}

/** The places where server and agent listen. */
export function placesOf({ server: { http: listen, pulladdr }, agent: { pulladdr: agentPulladdr } }: Config): Place[] {
  const { bind, port, agent_port: agentPort, ssl: tls } = listen;
  const metrics = (owner: Place['owner'], check: string, address: string | undefined, env: string) =>
    address === undefined ? [] : [{ ...metricsPlace({ address, key: `${owner}.pulladdr`, env }), check, owner }];
  return [
    { bind, flag: '--port', check: 'server port', port, setting: 'server.http.port (PORT)', owner: 'server', tls },
    { bind, flag: '--port', check: 'agent port', port: agentPort, setting: 'server.http.agent_port (AGENT_PORT)', owner: 'agent' },
    ...metrics('server', 'metrics port', pulladdr, 'GATEWAY_PULLADDR'),
    ...metrics('agent', 'metrics port of the agent', agentPulladdr, 'GATEWAY_AGENT_PULLADDR'),
  ];
}

/** Whether the gateway may listen there, or does. Listens there for a moment. */
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
    const fix = `check ${place.setting}`;
    const explained = explainListenError(error, place) as { fix?: string };
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') return failedBy(check, explained, fix);
    if (await isOwner(place)) return ok(check, `${port} on ${bind}: our ${owner} listens there`);
    return failed(check, `${port} on ${bind} is taken by a process that is not our ${owner}`, explained.fix ?? fix);
  }
}

async function isOwner({ check, bind, port, tls, owner }: Place): Promise<boolean> {
  const host = bind === '0.0.0.0' ? '127.0.0.1' : bind === '::' ? '::1' : bind;
  const path = check.startsWith('metrics') ? '/metrics' : '/healthz';
  // The certificate is for the public name, and nothing secret is sent.
  const request = (tls ? https : http).get({ host, port, path, rejectUnauthorized: false, signal: AbortSignal.timeout(ANSWER_MS) });
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    // Metrics do not name their process, and may need a token.
    if (path === '/metrics') return response.statusCode === 200 || response.statusCode === 401;
    const { data } = (await json(response)) as { data?: { plugins?: unknown; components?: unknown } };
    return Array.isArray(data?.plugins) && Array.isArray(data.components) === (owner === 'agent');
  } catch {
    return false;
  } finally {
    request.on('error', () => undefined).destroy();
  }
}
