import { empty } from '../store/batches.js';
import { endpoint as receiver, type Endpoint } from '../support/endpoint.js';
import { proxy, type Proxy } from '../support/proxy.js';
import { within } from '../support/until.js';
import { makeEndpoint, makeSubscription } from './records.js';
import { runAgent, type Migrated, type RunningAgent } from './running.js';

export interface Scene {
  readonly running: RunningAgent;
  readonly postgres: Proxy;
  readonly at: Endpoint;
  readonly endpointId: string;
}

/**
 * Runs a test with a new agent that reaches Postgres through a proxy, and empties the tables
 * afterwards.
 * @param options additional options of the agent
 */
export async function withAgent(
  db: Migrated,
  test: (scene: Scene) => Promise<void>,
  options: Omit<Parameters<typeof runAgent>[0], 'db' | 'port'> = {},
): Promise<void> {
  const postgres = await proxy({ port: Number(new URL(db.url).port) });
  const running = await runAgent({ db, port: postgres.port, ...options });
  const at = await receiver();
  try {
    const { id: endpointId } = await makeEndpoint(db, running.projectId, { url: at.url });
    await makeSubscription(db, running.projectId, { endpointId });
    await running.configCache.refresh();
    await within(test({ running, postgres, at, endpointId }), 60_000, 'the test');
  } finally {
    postgres.restore();
    await at.close();
    await running.close();
    await postgres.close();
    await empty(db);
  }
}
