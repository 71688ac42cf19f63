import { GatewayError } from '@gateway/core/errors';
import type { Querier } from '../postgres/connection.js';
import { requireReadyShard, type Shards } from '../shards/open-shards.js';
import { beginMove, callOffMove, continueMove } from './moves.js';
import { readProjectShard, requireShard } from '../shards/shards.js';

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
  await requireReadyShard(shards.of(name));
  return name;
}

interface Assignment {
  readonly projectId: string;
  readonly to: string;
  /** Refuses a project that has events. */
  readonly mustBeEmpty?: boolean;
}

/**
 * Moves a project to another shard while it runs. Resolves when the shard takes its new events; agents
 * then move the earlier ones. With the shard that the project has, calls off a move that has not come
 * so far. Can be repeated after a failure. Returns the shard that it had.
 *
 * @throws GatewayError `not_found`; `conflict` if the shard is draining, while another move of the
 *   project has not ended, or if the project has events and must be empty; `migration_pending`;
 *   errors of the databases of both shards
 */
export async function moveToShard(
  shards: Shards,
  { projectId, to, mustBeEmpty = false }: Assignment,
): Promise<string> {
  const from = await requireProject(shards, projectId);
  await requireReadyShard(shards.of(from));
  if (mustBeEmpty && from !== to && (await hasRows(shards.of(from).database.pool, projectId)))
    throw new GatewayError('conflict', {
      sentence: `the project has events on the shard ${from}`,
      fix: `run \`gateway shards move ${projectId} ${to}\`, which keeps them`,
    });
  if (from === to) {
    await callOffMove(shards, projectId);
    return from;
  }
  await requireTarget(shards, to);
  const move = await beginMove(shards.control.pool, { projectId, from, to });
  if (move.phase === 'stopping') await continueMove(shards, move);
  return from;
}

async function requireProject({ control }: Shards, projectId: string): Promise<string> {
  const shard = await readProjectShard(control.pool, projectId);
  if (!shard) throw new GatewayError('not_found', { thing: 'project', id: projectId });
  return shard;
}
