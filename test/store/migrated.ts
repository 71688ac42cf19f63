import { openDatabase, type Database } from '#store/postgres/database';
import { migrateUp } from '#store/postgres/migrate';
import { DATA_TABLES } from '#store/postgres/planes';
import { bothPlanes, type Planes } from '#store/postgres/planes';
import { connectionOf, database } from '../support/database.js';

/** With `npm run test:citus`, the data plane is in this schema, which Citus distributes. */
const SHARD = 's1';
const isOnCitus = Boolean(process.env['TEST_CITUS_URL']);

export function openUrl(url: string, poolSize = 4, schema?: string): Database {
  return openDatabase(
    { scheme: 'postgres', ...connectionOf(url) },
    { poolSize, name: 'test', schema, plans: isOnCitus ? 'custom' : 'generic' },
  );
}

export async function migrate(url: string): Promise<void> {
  const opened = openUrl(url);
  try {
    await migrateUp(opened);
    if (isOnCitus) await migrateShard(opened, url);
  } finally {
    await opened.close();
  }
}

/** Replaces the data plane of the default shard by a distributed schema. */
async function migrateShard({ pool }: Database, url: string): Promise<void> {
  await pool.query(`drop table ${DATA_TABLES.join()}`);
  await pool.query(`create schema ${SHARD}`);
  await pool.query(`select citus_schema_distribute('${SHARD}')`);
  const shard = openUrl(url, 1, SHARD);
  try {
    await migrateUp(shard, { shard: SHARD });
  } finally {
    await shard.close();
  }
  const name = new URL(url).pathname.slice(1);
  await pool.query(`alter database ${name} set search_path = ${SHARD}, public`);
}

/** A private, migrated and opened database; `rows` bypasses the store. */
export async function migratedDatabase(): Promise<
  Database & { url: string; planes: Planes; rows: Awaited<ReturnType<typeof database>>['rows'] }
> {
  const own = await database({ migrate });
  const opened = openUrl(own.url);
  return {
    ...opened,
    url: own.url,
    planes: bothPlanes(opened),
    rows: own.rows,
    close: async () => {
      await opened.close();
      await own.close();
    },
  };
}
