import { openDatabase, type Database } from '#store/postgres/database';
import { migrateUp } from '#store/postgres/migrate';
import { DATA_TABLES } from '#store/postgres/planes';
import { bothPlanes } from '#store/postgres/planes';
import type { ShardPlanes } from '#store/shards/open-shards';
import { DEFAULT_SHARD } from '#store/shards/shards';
import { connectionOf, database, isOnCitus } from '../support/database.js';

/** The schema of the data plane on Citus, which distributes it. */
export const SCHEMA = 's1';

/**
 * @param schema the one that Citus distributes
 */
export function openUrl(url: string, poolSize = 4, schema?: string): Database {
  return openDatabase(
    { scheme: 'postgres', ...connectionOf(url) },
    { poolSize, name: 'test', schema, plans: isOnCitus || schema ? 'custom' : 'generic' },
  );
}

export async function migrate(url: string): Promise<void> {
  const opened = openUrl(url);
  try {
    await migrateUp(opened);
    if (isOnCitus) await moveToSchema(opened, url);
  } finally {
    await opened.close();
  }
}

/** Replaces the data plane of the default shard by a distributed schema. */
async function moveToSchema({ pool }: Database, url: string): Promise<void> {
  await pool.query(`drop table ${DATA_TABLES.join()}`);
  await createSchema(url);
  const name = new URL(url).pathname.slice(1);
  await pool.query(`alter database ${name} set search_path = ${SCHEMA}, public`);
}

/** Creates the schema of a shard in a database on Citus, with its tables. */
export async function createSchema(url: string): Promise<void> {
  const shard = openUrl(url, 1, SCHEMA);
  try {
    await shard.pool.query(`create schema ${SCHEMA}`);
    await shard.pool.query(`select citus_schema_distribute('${SCHEMA}')`);
    await migrateUp(shard, { shard: SCHEMA });
  } finally {
    await shard.close();
  }
}

/** A private, migrated and opened database; `rows` bypasses the store. */
export async function migratedDatabase(): Promise<
  Database & {
    url: string;
    planes: ShardPlanes;
    rows: Awaited<ReturnType<typeof database>>['rows'];
  }
> {
  const own = await database({ migrate });
  const opened = openUrl(own.url);
  return {
    ...opened,
    url: own.url,
    planes: { ...bothPlanes(opened), shard: DEFAULT_SHARD },
    rows: own.rows,
    close: async () => {
      await opened.close();
      await own.close();
    },
  };
}
