import type { Database } from '@gateway/store/postgres';
import { DEFAULT_SHARD, readProjectShard } from '@gateway/store/shards';
import type { IntakeConfig } from './config-cache.js';

export type ShardOf = (projectId: string) => string | Promise<string>;

export function shardFinder(
  configCache: Pick<IntakeConfig, 'projects'>,
  { pool }: Pick<Database, 'pool'>,
): ShardOf {
  return (projectId) =>
    configCache.projects.get(projectId)?.shard ??
    readProjectShard(pool, projectId).then((shard) => shard ?? DEFAULT_SHARD);
}
