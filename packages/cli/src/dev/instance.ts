import { startAgent } from '@gateway/agent';
import type { Resolved } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import { isMissed } from '@gateway/core/plugins';
import type { Lifecycle } from '@gateway/core/process';
import { startServer } from '@gateway/server';
import { openKv } from '@gateway/store/kv';
import { licenceOf, startPlugins } from '../app/installation.js';
import { Api } from './api.js';
import { startInbox, type Inbox } from './services/inbox.js';
import { MessageWatch } from './message-watch.js';
import { LOOPBACK, type Ports } from './services/ports.js';
import { startQueue, type Queue } from './services/queue.js';
import { prepareDatabase, setUp, type Setup } from './setup.js';
import type { DevState } from './state.js';

export interface InstanceOptions {
  readonly state: DevState;
  readonly ports: Ports;
  /** The settings with the current ports. */
  readonly resolve: () => Resolved;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
  /** Called when a part is ready. */
  readonly tell: (part: string, text: string) => void;
}

/** A component of `/healthz`. */
export interface Component {
  readonly name: string;
  readonly state: 'ok' | 'degraded' | 'down';
  readonly reason?: string;
}

/** A running server and agent, with queue and inbox. */
export interface Instance {
  readonly queue: Queue;
  readonly inbox: Inbox;
  readonly watch: MessageWatch;
  readonly api: Api;
  readonly apiUrl: string;
  readonly setup: Setup;
  /** The components of the agent. */
  health(): Promise<readonly Component[]>;
}

/** Starts everything but Postgres, which must run. */
export async function startInstance({ state, ports, resolve, log, lifecycle, tell }: InstanceOptions): Promise<Instance> {
  const resolved = resolve();
  const { config } = resolved;
  const { applied, apiKey } = await prepareDatabase(config, state);
  if (applied.length > 0) tell('migrations', `${applied.length} applied`);

  const inbox = await ports.listen('inbox', startInbox);
  lifecycle.add('inbox', () => inbox.close());
  const queue = await ports.listen('queue', startQueue);
  lifecycle.add('queue', () => queue.close());
  tell('queue', `${queue.endpoint}, an SQS emulator`);

  const activated = await startPlugins(resolved, { licence: licenceOf(config), serviceName: 'gateway-dev', log });
  lifecycle.add('plugins', () => activated.close());
  for (const plugin of activated.table.filter((it) => isMissed(it, config))) {
    tell(plugin.name, `inactive because ${plugin.reason}: ${plugin.fix}`);
  }
  const watch = new MessageWatch();
  const plugins = watch.plugins(activated);

  const kv = openKv({ ...config.kv, type: 'in-memory' }, () => undefined);
  const server = await ports.listen('api', () =>
    startServer({ config: resolve().config, plugins, kv, log: log.child({ part: 'server' }) }),
  );
  lifecycle.add('server', () => server.close());
  const apiUrl = `http://${LOOPBACK}:${server.port}/api/v1`;
  tell('server', `http://${LOOPBACK}:${server.port}`);

  const api = new Api(apiUrl, apiKey);
  const setup = await setUp(api, state, { queue: queue.endpoint, inbox: `${inbox.url}/` });
  inbox.setSecret(setup.endpointSecret);
  if (setup.made.length > 0) tell('made', `over the API: ${setup.made.join(', ')}`);

  const agent = await ports.listen('agent', () => startAgent({ config: resolve().config, plugins, kv, log: log.child({ part: 'agent' }) }));
  lifecycle.add('agent', () => agent.close());
  tell('agent', `http://${LOOPBACK}:${agent.port}`);
  const health = async () => {
    const response = await fetch(`http://${LOOPBACK}:${agent.port}/healthz`, { signal: AbortSignal.timeout(3_000) });
    return ((await response.json()) as { data: { components: readonly Component[] } }).data.components;
  };
  return { queue, inbox, watch, api, apiUrl, setup, health };
}
