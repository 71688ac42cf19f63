import type { Meter } from '@gateway/core/metrics';
import type { Database } from './database.js';

type Pools = Pick<Database, 'pool' | 'sessions' | 'builderPool'>;

/** Connections of the pools together. `waiting`: requests for a connection that have none yet. */
export function poolUsage({ pool, sessions, builderPool: builder }: Pools): Readonly<Record<'busy' | 'idle' | 'waiting', number>> {
  const sum = (count: (it: Database['pool']) => number) => [...new Set([pool, sessions])].reduce((total, it) => total + count(it), 0);
  return {
    busy: sum((it) => it.totalCount - it.idleCount) + (builder?.numUsed() ?? 0),
    idle: sum((it) => it.idleCount) + (builder?.numFree() ?? 0),
    waiting: sum((it) => it.waitingCount) + (builder?.numPendingAcquires() ?? 0),
  };
}

/** The databases of each meter: an agent and a server in one process have pools of their own. */
const exported = new WeakMap<Meter, Set<Pools>>();

/** Exports the connections of the pools, read at each exposition. Returns a function that stops it. */
export function exportPoolMetrics(meter: Meter, database: Pools): () => void {
  const databases = exported.get(meter) ?? new Set();
  exported.set(meter, databases.add(database));
  const stop = meter.collect(() => {
    const usages = [...databases].map(poolUsage);
    for (const state of ['busy', 'idle', 'waiting'] as const) {
      const n = usages.reduce((sum, usage) => sum + usage[state], 0);
      meter.set('gateway_pool_connections', { state }, n);
    }
  });
  return () => {
    databases.delete(database);
    stop();
  };
}
