import { GatewayError } from '@gateway/core/errors';
import { requireReadyShard, type Shards } from '../shards/open-shards.js';
import { beginMove, callOffMove, continueMove } from './moves.js';
import { conflict, readProjectShard, requireShard } from '../shards/shards.js';

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

/**
 * Moves a project while it runs. Resolves when the shard takes its new events; agents then move the
 * earlier ones. With the shard that the project has, calls off a move that has not come so far. Can
 * be repeated after a failure. Returns the shard that it had.
 *
 * @throws GatewayError as `requireTarget`; `conflict` while another move of the project has not
 *   ended; errors of both databases
 */
export async function moveToShard(
  shards: Shards,
  { projectId, to }: { readonly projectId: string; readonly to: string },
): Promise<string> {
  const from = await requireProject(shards, projectId);
  await requireReadyShard(shards.of(from));
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
