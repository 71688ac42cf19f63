import type { Database } from '@gateway/store/postgres';
import { DEFAULT_SHARD, readProjectShard } from '@gateway/store/shards';
import type { IntakeConfig } from './config-cache.js';

/** Returns the shard that takes the new events of a project. */
export type ShardOf = (projectId: string) => string | Promise<string>;

/**
 * Returns a function that finds the shard of a project: in memory, or in Postgres if the project is
 * not loaded yet.
 */
export function shardFinder(
  configCache: Pick<IntakeConfig, 'projects'>,
  { pool }: Pick<Database, 'pool'>,
): ShardOf {
  return (projectId) =>
    configCache.projects.get(projectId)?.shard ??
    readProjectShard(pool, projectId).then((shard) => shard ?? DEFAULT_SHARD);
}
