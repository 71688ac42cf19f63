import type pg from 'pg';
import { DATA_TABLES } from '#store/postgres/planes';
import type { Database } from '#store/postgres/database';
import { migrateUp } from '#store/postgres/migrate';
import { queueOf, type Kv } from '#store/kv/kv';
import { insertShard } from '#store/shards/shards';
import { openUrl, type migratedDatabase } from '../store/migrated.js';
import { connectionOf, database } from '../support/database.js';

type Migrated = Awaited<ReturnType<typeof migratedDatabase>>;

/** The name of the shard that `addShard` adds. */
export const SECOND = 'second';

const NAMES_DATA = new RegExp(
  String.raw`\b(from|into|update|join|table|truncate)\s+(only\s+)?(${DATA_TABLES.join('|')})(_\w+)?\b`,
  'i',
);

export interface SecondShard {
  readonly database: Database;
  readonly url: string;
  readonly rows: Migrated['rows'];
  close(): Promise<void>;
}

/** Adds a shard in a database of its own, which has only the tables of the data plane. */
export async function addShard(control: Pick<Database, 'pool'>): Promise<SecondShard> {
  const own = await database({ migrate });
  const opened = openUrl(own.url);
  await insertShard(control.pool, {
    name: SECOND,
    address: { ...connectionOf(own.url), password: null, options: null },
    schema: null,
    isCitus: false,
  });
  return {
    database: opened,
    url: own.url,
    rows: own.rows,
    async close() {
      await opened.close();
      await own.close();
    },
  };
}

async function migrate(url: string): Promise<void> {
  const opened = openUrl(url);
  try {
    await migrateUp(opened, { shard: SECOND });
  } finally {
    await opened.close();
  }
}

/**
 * Puts all projects on a second shard. The returned database sends a statement of the test to the
 * shard if it names tables of the data plane. Code that mixes up the planes fails: each database
 * lacks the other's rows.
 */
export async function onSecondShard(control: Migrated): Promise<Migrated> {
  const shard = await addShard(control);
  await control.rows(`alter table projects alter column shard set default '${SECOND}'`);
  await control.rows(`update shards set is_draining = true where name = 'default'`);
  const isOfData = (query: unknown) =>
    NAMES_DATA.test(typeof query === 'string' ? query : (query as pg.QueryConfig).text);
  const pool = new Proxy(control.pool, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      // A transaction of a test is one on the data plane.
      if (property === 'connect') return () => shard.database.pool.connect();
      if (property !== 'query')
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      return (query: string, values?: unknown[]) =>
        (isOfData(query) ? shard.database : control).pool.query(query, values);
    },
  });
  return {
    ...control,
    pool,
    rows: (sql, values) => (isOfData(sql) ? shard : control).rows(sql, values),
    async close() {
      await shard.close();
      await control.close();
    },
  };
}

/** Returns a KV whose queues are those of the second shard. */
export function withQueuesOfShard(kv: Kv): Kv {
  return new Proxy(kv, {
    get(target, property) {
      if (property === 'queue')
        return (name: Parameters<typeof queueOf>[0]) => target.queue(queueOf(name, SECOND));
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
