import { createRequire } from 'node:module';
import pg from 'pg';
import { newId } from '#core/events/ids';
import {
  deleteEndpoint,
  insertEndpoint,
  setEndpointStatus,
  deactivateEndpoint,
} from '#store/config/endpoints';
import { insertProject } from '#store/config/projects';
import { insertSource } from '#store/config/sources';
import { insertSubscription } from '#store/config/subscriptions';
import { bootstrapUser } from '#store/people/users';
import { applyPendingDeltas } from '#store/counts/count-deltas';
import { recordAttempts } from '#store/deliveries/delivery-attempts';
import {
  claimDue,
  readClaimed,
  releaseDeliveries,
  recoverDeliveries,
} from '#store/deliveries/claims';
import { settleDeliveries, sweepDeliveries } from '#store/deliveries/settle-deliveries';
import { acceptEvents, readPending, readStalePending, recordRoutes } from '#store/events/events';
import { registerAgent, sendHeartbeat, deregisterAgent } from '#store/deliveries/agents';
import { addUsage } from '#store/counts/usage';
import type { Database } from '#store/postgres/database';
import { bothPlanes } from '#store/postgres/planes';
import { quarantineMessages } from '#store/quarantine/messages';
import { runMaintenance } from '#store/retention/maintenance';
import { attempt, batch, newDelivery, newEvents, quarantinedMessage } from './batches.js';
import { readConfigVersion, readSnapshot } from './made.js';
import { migratedDatabase } from './migrated.js';

export interface ReleasedStatement {
  readonly text: string;
  /** The values in wire format: text, or null. */
  readonly values: readonly (string | null)[];
  /** The number of changed or found rows on the original schema. */
  readonly rows: number;
}

const { prepareValue } = createRequire(import.meta.url)('pg/lib/utils.js') as {
  prepareValue(value: unknown): string | Buffer | null;
};

/**
 * Runs the data plane operations of agents and servers on a database with the newest schema, and
 * records every statement.
 * @returns the statements in order; replayed on an empty database, they have the same effect
 */
export async function recordStatements(): Promise<ReleasedStatement[]> {
  const recorded: Omit<ReleasedStatement, 'rows'>[] = [];
  const db = await migratedDatabase();
  const { prototype } = pg.Client;
  const { query } = prototype;
  type Config = { readonly text: string; readonly values?: readonly unknown[] };
  prototype.query = function (
    this: pg.Client,
    config: string | Config,
    values?: readonly unknown[],
    ...rest: unknown[]
  ) {
    const text = typeof config === 'string' ? config : config.text;
    const given =
      (typeof config === 'string' ? undefined : config.values) ??
      (Array.isArray(values) ? values : []);
    recorded.push({ text, values: given.map(wireValue) });
    return (query as (...all: unknown[]) => unknown).call(this, config, values, ...rest);
  } as typeof query;
  try {
    await useAll(db);
  } finally {
    prototype.query = query;
    await db.close();
  }
  return replay(recorded);
}

function wireValue(value: unknown): string | null {
  const prepared = prepareValue(value);
  return Buffer.isBuffer(prepared) ? `\\x${prepared.toString('hex')}` : prepared;
}

/**
 * Sends statements to an empty database with the newest schema, in one session.
 * @returns the statements with the current numbers of rows
 * @throws Postgres' error, with the statement
 */
export async function replay(
  statements: readonly Omit<ReleasedStatement, 'rows'>[],
): Promise<ReleasedStatement[]> {
  const db = await migratedDatabase();
  const client = await db.connect();
  try {
    const replayed: ReleasedStatement[] = [];
    for (const { text, values } of statements) {
      const { rowCount } = await client.query(text, [...values]).catch((error: unknown) => {
        throw new Error(`${(error as Error).message}\n${text}`, { cause: error });
      });
      replayed.push({ text, values, rows: rowCount ?? 0 });
    }
    return replayed;
  } finally {
    await client.end();
    await db.close();
  }
}

/** Sends every kind of data plane statement of an agent and a server at least once. */
async function useAll(db: Database): Promise<void> {
  const { pool, knex } = db;
  const agent = await registerAgent(pool, 'released', 3_600_000);

  const { organisation } = await bootstrapUser(knex, {
    email: 'released@example.com',
    firstName: 'a',
    lastName: 'b',
  });
  const project = await insertProject(knex, organisation.id, {
    name: 'orders',
    type: 'outgoing',
    config: {},
  });
  const secrets = [
    { id: newId(), value: 'sealed', created_at: '2026-01-01T00:00:00.000Z', expires_at: null },
  ];
  const endpoint = await insertEndpoint(knex, project.id, {
    name: 'shop',
    url: 'https://example.com/hooks',
    owner_id: 'owner',
    description: '',
    secrets,
    authentication: null,
    timeout_ms: 10_000,
    concurrency: null,
    strategy: null,
  });
  const source = await insertSource(knex, project.id, {
    name: 'orders',
    type: 'pub_sub',
    pub_sub: { type: 'memory', workers: 1, memory: { queue: 'orders' } },
    body_function: null,
    is_disabled: false,
  });
  await insertSubscription(knex, project.id, {
    name: 'all',
    endpoint_id: endpoint.id,
    event_types: ['*'],
    filter: null,
  });
  await readConfigVersion(pool);
  await readSnapshot(pool);

  const of = { projectId: project.id, sourceId: source.id };
  const routed = newEvents(4, {
    ...of,
    idempotencyKey: null,
    occurredAtMs: Date.parse('2026-01-01'),
  });
  const held = routed.map((event) => newDelivery(event, { endpointId: endpoint.id }));
  await acceptEvents(pool, batch(routed, { deliveries: held, agentId: agent }));
  const discarded = newEvents(1, { ...of, idempotencyKey: 'key' });
  await acceptEvents(
    pool,
    batch(discarded, {
      deliveries: discarded.map((event) =>
        newDelivery(event, { endpointId: endpoint.id, status: 'discarded', reason: 'inactive' }),
      ),
      agentId: agent,
    }),
  );
  await quarantineMessages(pool, [quarantinedMessage(of)]);

  const pending = newEvents(2, { ...of, status: 'pending', outcome: null });
  await acceptEvents(pool, batch(pending, { agentId: agent }));
  await readPending(pool, pending);
  await readStalePending(pool, 0, 10);
  await recordRoutes(pool, {
    events: pending.map((event) => ({ ...event, status: 'processed', outcome: 'routed' })),
    deliveries: pending.map((event) =>
      newDelivery(event, { endpointId: endpoint.id, status: 'scheduled' }),
    ),
    agentId: agent,
  });
  await claimDue(pool, agent, {
    projectId: project.id,
    statuses: ['scheduled', 'retry'],
    exceptEndpoints: [],
    limit: 10,
  });

  const [first, second, third, fourth] = held.map((delivery) =>
    attempt(delivery, { agentId: agent }),
  );
  await recordAttempts(pool, [
    first!,
    {
      ...second!,
      status: 'retry',
      code: 500,
      errorClass: 'status',
      detail: 'The endpoint answered 500.',
      dueInMs: 60_000,
    },
    {
      ...third!,
      status: 'failure',
      code: null,
      errorClass: 'timeout',
      detail: 'No answer.',
      reason: 'No retry is left.',
    },
  ]);
  await readClaimed(pool, agent, 0);
  await releaseDeliveries(pool, agent, [fourth!], { to: 'due', dueInMs: 0 });
  for (const status of ['paused', 'active'] as const) {
    await setEndpointStatus(knex, project.id, endpoint.id, { status, reason: null });
    await settleDeliveries(bothPlanes({ pool }), {
      projectId: project.id,
      endpointId: endpoint.id,
    });
  }
  await sendHeartbeat(pool, agent, 3_600_000);
  await recoverDeliveries(pool, { orphans: false });
  await recoverDeliveries(pool, { orphans: true });
  await deactivateEndpoint(pool, project.id, endpoint.id, 'It answered 410 Gone.', '{}' as never);
  await deleteEndpoint(knex, project.id, endpoint.id);
  await sweepDeliveries(bothPlanes({ pool }), 3_600);
  await addUsage(pool, [
    { projectId: project.id, day: '2026-01-01', events: 1, deliveries: 1, bytes: 10 },
  ]);
  await applyPendingDeltas(pool);
  await runMaintenance({ ...bothPlanes({ pool }), shard: 'default' });
  await deregisterAgent(pool, agent);
}
