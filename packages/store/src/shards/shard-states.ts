import { explainDatabaseError, isGatewayError } from '@gateway/core/errors';
import { withTimeout } from '@gateway/core/process';
import type { Database } from '../postgres/database.js';
import { requireReady } from '../postgres/migrate.js';
import { migratedAs, type Shard, type Shards } from './open-shards.js';
import { DEFAULT_SHARD, listShards } from './shards.js';

const WITHIN_MS = 2_000;

/** In the last 24 hours. Reads the rows of one day in an index. */
async function eventsOfDay({ pool }: Pick<Database, 'pool'>): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    `select coalesce(sum(n), 0)::float8 as n from activity
     where at > now() - interval '24 hours' and kind = 'event'`,
  );
  return rows[0]!.n;
}

async function bytesOf({ pool }: Pick<Database, 'pool'>, isCitus: boolean): Promise<number> {
  const { rows } = await pool.query<{ bytes: number }>(
    `select coalesce(sum(${isCitus ? 'citus_total_relation_size' : 'pg_total_relation_size'}(oid)), 0)::float8 as bytes
     from pg_class where relnamespace = current_schema::regnamespace and relkind = 'r'`,
  );
  return rows[0]!.bytes;
}

/** `away` if its database cannot be used, `behind` if it lacks a migration. */
export type ShardCondition = 'ready' | 'behind' | 'away';

/** For the API and `gateway shards list`. */
export interface ShardState {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly schema: string | null;
  readonly is_citus: boolean;
  readonly is_draining: boolean;
  readonly created_at: Date;
  readonly state: ShardCondition;
  readonly reason: string | null;
  readonly projects: number;
  /** In the last 24 hours. Null unless it is ready. */
  readonly events_per_day: number | null;
  readonly bytes: number | null;
}

/** In the order of `listShards`. Asks all at once. */
export async function readShardStates(shards: Shards): Promise<ShardState[]> {
  const { control } = shards;
  const [rows, projects] = await Promise.all([listShards(control.pool), countProjects(control)]);
  const open = new Map(shards.all.map((shard) => [shard.name, shard]));
  const states = rows.map(async ({ name, schema, isCitus, isDraining, createdAt }) => {
    const shard = open.get(name);
    if (!shard) return [];
    const { host, port, database } = shard.settings;
    return [
      {
        name,
        host,
        port,
        database,
        schema,
        is_citus: isCitus,
        is_draining: isDraining,
        created_at: createdAt,
        projects: projects.get(name) ?? 0,
        ...(await conditionOf(shard, isCitus)),
      },
    ];
  });
  return (await Promise.all(states)).flat();
}

async function conditionOf(
  shard: Shard,
  isCitus: boolean,
): Promise<Pick<ShardState, 'state' | 'reason' | 'events_per_day' | 'bytes'>> {
  const { database, settings } = shard;
  const read = async () => {
    await requireReady(database, settings, migratedAs(shard));
    const [events, bytes] = await Promise.all([eventsOfDay(database), bytesOf(database, isCitus)]);
    return { state: 'ready', reason: null, events_per_day: events, bytes } as const;
  };
  return withTimeout(read(), WITHIN_MS).catch((error: unknown) => {
    const { message } = explainDatabaseError(error, settings);
    const isBehind = isGatewayError(error, 'migration_pending');
    return {
      state: isBehind ? 'behind' : 'away',
      reason: message,
      events_per_day: null,
      bytes: null,
    };
  });
}

async function countProjects({ pool }: Pick<Database, 'pool'>): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ name: string; n: number }>(
    'select shard as name, count(*)::int as n from projects where deleted_at is null group by shard',
  );
  return new Map(rows.map(({ name, n }) => [name, n]));
}

/**
 * For a new project: of the shards that are ready and not draining, that with the fewest events in
 * the last 24 hours or, if equal, the fewest projects. With the default one alone, no statement is
 * sent.
 */
export async function chooseShard(shards: Shards): Promise<string> {
  if (shards.all.length === 1) return DEFAULT_SHARD;
  await shards.refresh();
  const states = await readShardStates(shards);
  const [best] = states
    .filter(({ state, is_draining: isDraining }) => state === 'ready' && !isDraining)
    .sort((a, b) => a.events_per_day! - b.events_per_day! || a.projects - b.projects);
  return best?.name ?? DEFAULT_SHARD;
}
