import { GatewayError } from '@gateway/core/errors';
import type { Querier } from '../postgres/connection.js';
import { requireReadyShard, type Shards } from '../shards/open-shards.js';
import { beginMove, callOffMove, continueMove } from './moves.js';
import { conflict, readProjectShard, requireShard } from '../shards/shards.js';

async function hasRows(pool: Querier, projectId: string): Promise<boolean> {
  const { rows } = await pool.query<{ has: boolean }>(
    `select exists (select from events where project_id = $1) or exists (select from quarantined_messages where project_id = $1)
       or exists (select from event_counts where project_id = $1 and n > 0) as has`,
    [projectId],
  );
  return rows[0]!.has;
}

/**
 * @throws GatewayError `not_found`; `conflict` if the shard is draining; `migration_pending`;
 *   `shard_unusable`
 */
export async function requireTarget(shards: Shards, name: string): Promise<string> {
  const { isDraining } = await requireShard(shards.control.pool, name);
  if (isDraining)
    throw conflict(
      `the shard ${name} is draining and takes no projects`,
      `choose another one, or run \`gateway shards drain ${name} --undo\` first`,
    );
  await requireReadyShard(shards.of(name));
  return name;
}

interface Assignment {
  readonly projectId: string;
  readonly to: string;
  readonly mustBeEmpty?: boolean;
}

/**
 * Moves a project while it runs. Resolves when the shard takes its new events; agents then move the
 * earlier ones. With the shard that the project has, calls off a move that has not come so far. Can
 * be repeated after a failure. Returns the shard that it had.
 *
 * @throws GatewayError as `requireTarget`; `conflict` while another move of the project has not
 *   ended, or if it has events and must be empty; errors of both databases
 */
export async function moveToShard(
  shards: Shards,
  { projectId, to, mustBeEmpty = false }: Assignment,
): Promise<string> {
  const from = await requireProject(shards, projectId);
  await requireReadyShard(shards.of(from));
  if (mustBeEmpty && from !== to && (await hasRows(shards.of(from).database.pool, projectId)))
    throw conflict(
      `the project has events on the shard ${from}`,
      `run \`gateway shards move ${projectId} ${to}\`, which keeps them`,
    );
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
