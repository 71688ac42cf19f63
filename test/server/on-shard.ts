import type pg from 'pg';
import { queueOf, type Kv } from '#store/kv/kv';
import { openUrl, type migratedDatabase } from '../store/migrated.js';
import { isOfData, onShard, SECOND, type Shard, type ShardKind } from '../support/shard.js';

type Migrated = Awaited<ReturnType<typeof migratedDatabase>>;

/** Puts all projects on a shard, as `onShard` does; the pool sends statements as `rows` does. */
export async function openedOnShard(
  control: Migrated,
  kind: ShardKind = SECOND,
): Promise<Migrated & { readonly shard: Shard }> {
  const both = await onShard(control, kind);
  const { shard } = both;
  const data = openUrl(shard.url, 4, shard.schema);
  const pool = new Proxy(control.pool, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      // A transaction of a test is one on the data plane.
      if (property === 'connect') return () => data.pool.connect();
      if (property !== 'query')
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      return (query: string | pg.QueryConfig, values?: unknown[]) =>
        (isOfData(typeof query === 'string' ? query : query.text) ? data : control).pool.query(
          query,
          values,
        );
    },
  });
  return {
    ...both,
    pool,
    planes: { shard: kind, control: control.pool, data: data.pool },
    async close() {
      await data.close();
      await both.close();
    },
  };
}

/** Returns a KV whose queues are those of a shard. */
export function withQueuesOfShard(kv: Kv, shard: ShardKind): Kv {
  return new Proxy(kv, {
    get(target, property) {
      if (property === 'queue')
        return (name: Parameters<typeof queueOf>[0]) => target.queue(queueOf(name, shard));
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
