import type { Meter } from '@gateway/core/metrics';
import type { Database } from './database.js';

/** What knex keeps its connections in: https://github.com/vincit/tarn.js */
interface BuilderPool {
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
}

/** Connections of this process to Postgres, of both pools together. `waiting` are askers without one. */
export interface PoolUsage {
  readonly busy: number;
  readonly idle: number;
  readonly waiting: number;
}

/** Counts the connections. Asks nothing of Postgres. */
export function poolUsage({ pool, knex }: Pick<Database, 'pool' | 'knex'>): PoolUsage {
  const builder = (knex.client as { readonly pool?: BuilderPool }).pool;
  return {
    busy: pool.totalCount - pool.idleCount + (builder?.numUsed() ?? 0),
    idle: pool.idleCount + (builder?.numFree() ?? 0),
    waiting: pool.waitingCount + (builder?.numPendingAcquires() ?? 0),
  };
}

type Pools = Pick<Database, 'pool' | 'knex'>;

/** By meter, for parts of the gateway that share a process have pools of their own. */
const shown = new WeakMap<Meter, Set<Pools>>();

/**
 * Shows the connections of the pools in the metrics, read at each exposition.
 *
 * @returns what ends that
 */
export function exportPoolMetrics(meter: Meter, database: Pools): () => void {
  const databases = shown.get(meter) ?? new Set();
  shown.set(meter, databases.add(database));
  const stop = meter.collect(() => {
    const uses = [...databases].map(poolUsage);
    for (const state of ['busy', 'idle', 'waiting'] as const)
      meter.set(
        'gateway_pool_connections',
        { state },
        uses.reduce((sum, use) => sum + use[state], 0),
      );
  });
  return () => {
    databases.delete(database);
    stop();
  };
}
