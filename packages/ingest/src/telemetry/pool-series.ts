import type { Meter } from '@gateway/core/metrics/meter';
import type { Database } from '@gateway/store/postgres';

type Pools = Pick<Database, 'pool' | 'sessions' | 'builderPool'>;

/** Connections that are busy or idle, and requests that wait for one. */
export function poolUsage({
  pool,
  sessions,
  builderPool: builder,
}: Pools): Readonly<Record<'busy' | 'idle' | 'waiting', number>> {
  const sum = (count: (it: Database['pool']) => number) =>
    [...new Set([pool, sessions])].reduce((total, it) => total + count(it), 0);
  return {
    busy: sum((it) => it.totalCount - it.idleCount) + (builder?.numUsed() ?? 0),
    idle: sum((it) => it.idleCount) + (builder?.numFree() ?? 0),
    waiting: sum((it) => it.waitingCount) + (builder?.numPendingAcquires() ?? 0),
  };
}

/** Databases that are open now, with their shards. */
type OpenPools = () => readonly { readonly name: string; readonly database: Pools }[];

/** By meter. An agent and a server in one process share the meter, but not the pools. */
const exported = new WeakMap<Meter, Set<OpenPools>>();

/** Read at each exposition, until the returned function is called. */
export function exportPoolSeries(meter: Meter, open: OpenPools): () => void {
  const all = exported.get(meter) ?? new Set();
  exported.set(meter, all.add(open));
  const stop = meter.collect(() => {
    const databases = [...all].flatMap((each) => each());
    meter.clear('gateway_pool_connections');
    for (const shard of new Set(databases.map(({ name }) => name))) {
      const usages = databases
        .filter(({ name }) => name === shard)
        .map(({ database }) => poolUsage(database));
      for (const state of ['busy', 'idle', 'waiting'] as const) {
        const n = usages.reduce((sum, usage) => sum + usage[state], 0);
        meter.set('gateway_pool_connections', { shard, state }, n);
      }
    }
  });
  return () => {
    all.delete(open);
    stop();
  };
}
