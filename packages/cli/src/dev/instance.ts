import { startAgent } from '@gateway/agent';
import type { Resolved } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import { isMissed } from '@gateway/core/plugins';
import type { Lifecycle } from '@gateway/core/process';
import { startServer } from '@gateway/server';
import { openKv } from '@gateway/store/kv';
import { licenceOf, startPlugins } from '../app/start-plugins.js';
import { openApi, type Api } from './api.js';
import { prepareDatabase } from './database.js';
import type { HeldFolder } from './hold-folder.js';
import { readMemory } from './memory.js';
import { observed, type Observer } from './observe.js';
import { LOOPBACK, type Reservation } from './ports.js';
import { startQueue, type Queue } from './queue.js';
import { QUEUE_NAME } from './sample.js';
import { setUp, type Setup } from './setup.js';

export interface InstanceOptions {
  readonly held: HeldFolder;
  /** The settings with the ports as they are then. */
  readonly resolve: () => Resolved;
  readonly reservation: Reservation;
  readonly observer: Observer;
  readonly log: Log;
  /** Gets what closes each part. */
  readonly lifecycle: Lifecycle;
  /** Is told what is ready, for a person. May throw, to end the start there. */
  readonly tell: (part: string, text: string) => void;
}

/** A server and an agent, and what they stand on. */
export interface Instance {
  readonly queue: Queue;
  readonly api: Api;
  readonly apiUrl: string;
  readonly setup: Setup;
}

/** Starts what runs in this process, on a Postgres that runs already. */
export async function startInstance({ held, resolve, reservation, observer, log, lifecycle, tell }: InstanceOptions): Promise<Instance> {
  const { folder, inbox } = held;
  const resolved = resolve();
  const { config } = resolved;
  const { applied, memory } = await prepareDatabase(config, folder.memory, readMemory(folder.memory));
  if (applied.length > 0) tell('migrations', `${applied.length} applied`);

  const queue = await reservation.listen('queue', (port, letGo) => startQueue({ port, name: QUEUE_NAME, beforeListen: letGo }));
  lifecycle.add('queue', () => queue.close());
  tell('queue', `${queue.endpoint}, an SQS emulator`);

  const activated = await startPlugins(resolved, { licence: licenceOf(config), serviceName: 'gateway-dev', log });
  lifecycle.add('plugins', () => activated.close());
  for (const plugin of activated.table.filter((it) => isMissed(it, config))) {
    tell(plugin.name, `inactive because ${plugin.reason}: ${plugin.fix}`);
  }
  const plugins = observed(activated, observer);

  const kv = openKv({ ...config.kv, type: 'in-memory' }, () => undefined);
  const server = await reservation.listen('api', async (_, letGo) => {
    await letGo();
    return startServer({ config: resolve().config, plugins, kv, log: log.child({ part: 'server' }) });
  });
  lifecycle.add('server', () => server.close());
  const apiUrl = `http://${LOOPBACK}:${server.port}/api/v1`;
  tell('server', `http://${LOOPBACK}:${server.port}`);

  const api = openApi(apiUrl, memory.api_key ?? '');
  const setup = await setUp(api, folder.memory, memory, { queueEndpoint: queue.endpoint, inboxUrl: `${inbox.url}/` });
  inbox.setSecret(setup.endpointSecret);
  if (setup.made.length > 0) tell('made', `over the API: ${setup.made.join(', ')}`);

  const agent = await reservation.listen('agent', async (_, letGo) => {
    await letGo();
    return startAgent({ config: resolve().config, plugins, kv, log: log.child({ part: 'agent' }) });
  });
  lifecycle.add('agent', () => agent.close());
  tell('agent', `http://${LOOPBACK}:${agent.port}`);
  return { queue, api, apiUrl, setup };
}
