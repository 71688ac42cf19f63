import { startAgent } from '@gateway/agent';
import type { Resolved } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import { activate, isMissed, type Discovery } from '@gateway/core/plugins';
import type { HealthComponent, Lifecycle } from '@gateway/core/process';
import { startServer } from '@gateway/server';
import { openIntake } from '@gateway/server/intake';
import { openKv } from '@gateway/store/kv';
import { licenceOf } from '@gateway/cli/app/installation';
import { Api } from './api.js';
import { startInbox, type Inbox } from './services/inbox.js';
import { LOOPBACK, type Ports } from './services/ports.js';
import { startQueue, type QueueEmulator } from './services/queue.js';
import { prepareDatabase, setUp } from './setup.js';
import type { DevState } from './state.js';

interface InstanceOptions {
  readonly state: DevState;
  readonly ports: Ports;
  readonly resolved: Resolved;
  readonly discovery: Discovery;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
  /** Prints that a part is ready. Throws after an interruption, to end the startup. */
  readonly tell: (part: string, text: string) => void;
}

export interface Instance {
  readonly state: DevState;
  readonly log: Log;
  readonly queue: QueueEmulator;
  readonly inbox: Inbox;
  readonly api: Api;
  readonly serverUrl: string;
  readonly agentUrl: string;
  /** The project's path in the API. */
  readonly project: string;
  readonly sourceName: string;
  /** Labels of the resources created in this run. */
  readonly made: readonly string[];
  health(): Promise<readonly Omit<HealthComponent, 'since'>[]>;
}

/** Starts everything except Postgres, which must already be running. */
export async function startInstance({
  state,
  ports,
  resolved,
  discovery,
  log,
  lifecycle,
  tell,
}: InstanceOptions): Promise<Instance> {
  const { config } = resolved;
  const { applied, apiKey } = await prepareDatabase(config, state);
  if (applied.length > 0) tell('migrations', `${applied.length} applied`);

  const inbox = await startInbox(await ports.release('inbox'));
  lifecycle.add('inbox', () => inbox.close());
  const queue = await startQueue(await ports.release('queue'));
  lifecycle.add('queue', () => queue.close());
  tell('queue', `${queue.endpoint}, an SQS emulator`);

  const plugins = await activate({
    discovery,
    resolved,
    licence: licenceOf(config),
    serviceName: 'gateway-dev',
    log,
  });
  lifecycle.add('plugins', () => plugins.close());
  for (const plugin of plugins.table.filter((it) => isMissed(it, config))) {
    tell(plugin.name, `inactive because ${plugin.reason}: ${plugin.fix}`);
  }

  const kv = openKv({ ...config.kv, type: 'in-memory' }, () => undefined);
  const serverUrl = `http://${LOOPBACK}:${await ports.release('api')}`;
  const server = await startServer({ config, plugins, kv, log: log.child({ part: 'server' }) });
  lifecycle.add('server', () => server.close());
  tell('server', serverUrl);

  const api = new Api(`${serverUrl}/api/v1`, apiKey);
  const { made, sourceName } = await setUp(api, state, {
    queue: queue.endpoint,
    inbox: `${inbox.url}/`,
  });
  inbox.setSecret(state.record.endpoint_secret ?? '');
  if (made.length > 0) tell('made', `over the API: ${made.join(', ')}`);

  const agentUrl = `http://${LOOPBACK}:${await ports.release('agent')}`;
  const agent = await startAgent({
    config,
    plugins,
    kv,
    log: log.child({ part: 'agent' }),
    intake: openIntake,
  });
  lifecycle.add('agent', () => agent.close());
  tell('agent', agentUrl);
  const health = async () => {
    const token = config.metrics.bearer_token;
    // `fetch` sends each character of a header value as one byte, so the UTF-8 bytes of the token
    // are passed as Latin-1.
    const headers =
      token === undefined
        ? {}
        : { authorization: `Bearer ${Buffer.from(token).toString('latin1')}` };
    const response = await fetch(`${agentUrl}/healthz`, {
      headers,
      signal: AbortSignal.timeout(3_000),
    });
    return ((await response.json()) as { data: { components: readonly HealthComponent[] } }).data
      .components;
  };
  return {
    state,
    log,
    queue,
    inbox,
    api,
    serverUrl,
    agentUrl,
    project: `/projects/${state.record.project_id}`,
    sourceName,
    made,
    health,
  };
}
