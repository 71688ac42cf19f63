import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '@gateway/core/errors';
import type { Database } from '../postgres/database.js';
import { requireReady } from '../postgres/migrate.js';
import type { Querier } from '../postgres/connection.js';
import { explainShardError, migratedAs, type Shards } from './open-shards.js';
import { readProjectShards, requireShard } from './shards.js';

/** Processes have read a changed project by then, and write its events to the new shard. */
const READ_BY_ALL_MS = 3_000;

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
export async function requireTarget(
  control: Database,
  shards: Shards,
  name: string,
): Promise<string> {
  const { isDraining } = await requireShard(control.pool, name);
  if (isDraining)
    throw new GatewayError('conflict', {
      sentence: `the shard ${name} is draining and takes no projects`,
      fix: `choose another one, or run \`gateway shards drain ${name} --undo\` first`,
    });
  const shard = shards.of(name);
  const quiet = { warn: () => undefined };
  await requireReady(shard.database, shard.settings, quiet, migratedAs(shard)).catch(
    (error: unknown) => {
      throw explainShardError(error, shard);
    },
  );
  return name;
}

/**
 * Assigns a project without events to another shard, and waits until all processes have read the
 * change. Returns the shard that it had. Events that were accepted meanwhile stay readable in that
 * one, which then counts as a former shard.
 *
 * @throws GatewayError `not_found`; `conflict` if the project has events, or the shard is draining;
 *   `migration_pending`; errors of the databases of both shards
 */
export async function assignProject(
  control: Database,
  shards: Shards,
  { projectId, to }: { readonly projectId: string; readonly to: string },
): Promise<string> {
  const place = await readProjectShards(control.pool, projectId);
  if (!place) throw new GatewayError('not_found', { thing: 'project', id: projectId });
  const { shard: from } = place;
  if (from === to) return from;
  await requireTarget(control, shards, to);
  const { pool: old } = shards.of(from).database;
  if (place.former_shards.length > 0 || (await hasRows(old, projectId)))
    throw new GatewayError('conflict', {
      sentence: `the project has events on the shard ${from}`,
      fix: `run \`gateway shards move ${projectId} ${to}\`, which keeps them`,
    });
  const { rowCount } = await control.pool.query(
    'update projects set shard = $3, updated_at = now() where id = $1 and shard = $2 and deleted_at is null',
    [projectId, from, to],
  );
  if (rowCount === 0) throw new GatewayError('not_found', { thing: 'project', id: projectId });
  await sleep(READ_BY_ALL_MS);
  if (await hasRows(old, projectId))
    await control.pool.query(
      'update projects set former_shards = array[$2] where id = $1 and not $2 = any (former_shards)',
      [projectId, from],
    );
  return from;
}
