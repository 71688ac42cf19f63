import { migrateUp } from '#store/postgres/migrate';
import { insertShard } from '#store/shards/shards';
import { createSchema, openUrl, SCHEMA } from '../store/migrated.js';
import { connectionOf, database, type Database } from './database.js';
import { planesOf } from './planes.js';

/** A database of its own in the shared Postgres, or a schema on the Citus cluster. */
export type ShardKind = 'second' | 'citus';

/** The name of the shard in a database of its own. */
export const SECOND = 'second' satisfies ShardKind;

/**
 * The shard with all projects of a test, by TEST_SHARD. Its name is its kind. Undefined if they are
 * on the default shard.
 */
export const testShard = process.env['TEST_SHARD'] as ShardKind | undefined;

/** The database of a shard, which has only the tables of the data plane. */
export interface Shard extends Database {
  /** The schema with the tables on Citus. */
  readonly schema: string | undefined;
}

/**
 * Adds a shard to a control plane. The caller closes it.
 * @param postgres the server of a second database; by default the shared one
 */
export async function addShard(
  control: Pick<Database, 'url'>,
  kind: ShardKind = SECOND,
  postgres?: { readonly url: string },
): Promise<Shard> {
  const schema = kind === 'citus' ? SCHEMA : undefined;
  const own = await (schema
    ? database({ migrate: createSchema, citus: true, schema })
    : database({ migrate: createTables, ...(postgres && { postgres }) }));
  const { pool, close } = openUrl(control.url, 1);
  try {
    await insertShard(pool, {
      name: kind,
      address: { ...connectionOf(own.url), password: null, options: null },
      schema: schema ?? null,
      isCitus: schema !== undefined,
    });
  } finally {
    await close();
  }
  return { ...own, schema };
}

async function createTables(url: string): Promise<void> {
  const opened = openUrl(url);
  try {
    await migrateUp(opened, { shard: SECOND });
  } finally {
    await opened.close();
  }
}

/** Returns whether a statement belongs on the shard. */
export function isOfData(sql: string): boolean {
  return planesOf(sql).data.length > 0;
}

/**
 * Puts all projects on a shard, as `addShard` adds it. `rows` of the returned database sends a statement to the shard if
 * it names tables of the data plane. Code that mixes up the planes fails: each database lacks the
 * other's rows.
 */
export async function onShard<Control extends Pick<Database, 'url' | 'rows' | 'close'>>(
  control: Control,
  kind: ShardKind = SECOND,
  postgres?: { readonly url: string },
): Promise<Control & { readonly shard: Shard }> {
  const shard = await addShard(control, kind, postgres);
  await control.rows(`alter table projects alter column shard set default '${kind}'`);
  await control.rows(`update shards set is_draining = true where name = 'default'`);
  return {
    ...control,
    shard,
    rows: (sql, values) => (isOfData(sql) ? shard : control).rows(sql, values),
    async close() {
      await shard.close();
      await control.close();
    },
  };
}
