import { GatewayError } from '@gateway/core/errors';
import { requireReady } from '../postgres/migrate.js';
import type { Querier } from '../postgres/connection.js';
import { explainShardError, migratedAs, type Shard, type Shards } from './open-shards.js';
import { callOffMove, moveProject } from './moves.js';
import { readProjectShards, requireShard, type ProjectShards } from './shards.js';

async function hasRows(pool: Querier, projectId: string): Promise<boolean> {
  const { rows } = await pool.query<{ has: boolean }>(
    `select exists (select from events where project_id = $1) or exists (select from quarantined_messages where project_id = $1)
       or exists (select from event_counts where project_id = $1 and n > 0) as has`,
    [projectId],
  );
  return rows[0]!.has;
}

/**
 * Checks that a shard can take a project, and returns its name.
 *
 * @throws GatewayError `not_found`; `conflict` if the shard is draining; `migration_pending`;
 *   `shard_unusable`
 */
export async function requireTarget(shards: Shards, name: string): Promise<string> {
  const { isDraining } = await requireShard(shards.control.pool, name);
  if (isDraining)
    throw new GatewayError('conflict', {
      sentence: `the shard ${name} is draining and takes no projects`,
      fix: `choose another one, or run \`gateway shards drain ${name} --undo\` first`,
    });
  await requireUsable(shards.of(name));
  return name;
}

async function requireUsable(shard: Shard): Promise<void> {
  const quiet = { warn: () => undefined };
  await requireReady(shard.database, shard.settings, quiet, migratedAs(shard)).catch(
    (error: unknown) => {
      throw explainShardError(error, shard);
    },
  );
}

interface Assignment {
  readonly projectId: string;
  readonly to: string;
}

/**
 * Moves a project to another shard while it runs (`moveProject`), or to the shard that it has, which
 * calls off a move that has not ended. Can be repeated after a failure. Returns the shard that it had.
 *
 * @throws GatewayError `not_found`; `conflict` if the shard is draining; `migration_pending`; errors
 *   of the databases of both shards
 */
export async function moveToShard(shards: Shards, { projectId, to }: Assignment): Promise<string> {
  const { shard: from } = await requireProject(shards, projectId);
  await requireUsable(shards.of(from));
  if (from === to) {
    const isStill = await callOffMove(shards.of(from).planes, projectId);
    return isStill ? from : moveToShard(shards, { projectId, to });
  }
  await requireTarget(shards, to);
  const pool = (name: string) => shards.of(name).database.pool;
  const pools = { control: shards.control.pool, from: pool(from), into: pool(to) };
  await moveProject(pools, { projectId, from, to });
  return from;
}

/**
 * Moves a project that has no events to another shard. Returns the shard that it had.
 *
 * @throws GatewayError those of `moveToShard`; `conflict` if the project has events
 */
export async function assignProject(
  shards: Shards,
  { projectId, to }: Assignment,
): Promise<string> {
  const { shard: from, former_shards: former } = await requireProject(shards, projectId);
  if (from === to) return from;
  if (former.length > 0 || (await hasRows(shards.of(from).database.pool, projectId)))
    throw new GatewayError('conflict', {
      sentence: `the project has events on the shard ${from}`,
      fix: `run \`gateway shards move ${projectId} ${to}\`, which keeps them`,
    });
  await moveToShard(shards, { projectId, to });
  // Nothing is accepted there any more, so an empty shard stays empty and need not be read.
  if (!(await hasRows(shards.of(from).database.pool, projectId)))
    await shards.control.pool.query(
      'update projects set former_shards = array_remove(former_shards, $2) where id = $1',
      [projectId, from],
    );
  return from;
}

async function requireProject({ control }: Shards, projectId: string): Promise<ProjectShards> {
  const found = await readProjectShards(control.pool, projectId);
  if (!found) throw new GatewayError('not_found', { thing: 'project', id: projectId });
  return found;
}
