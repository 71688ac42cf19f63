import type { Database } from '../postgres/database.js';
import { explainShardError, type Shards } from './open-shards.js';
import { conflict, DEFAULT_SHARD, requireShard } from './shards.js';

/**
 * A draining shard gets no new projects.
 *
 * @throws GatewayError `not_found`; `conflict` if no other shard could take new projects
 */
export async function drainShard(
  { pool }: Pick<Database, 'pool'>,
  name: string,
  isDraining: boolean,
): Promise<void> {
  const { rows } = await pool.query<{ others: boolean }>(
    `update shards s set is_draining = $2
     where name = $1 and (not $2 or exists (select from shards o where o.name <> $1 and not o.is_draining)) returning true`,
    [name, isDraining],
  );
  if (rows.length > 0) return;
  await requireShard(pool, name);
  throw conflict(
    `no other shard takes new projects than ${name}`,
    'add a shard first, or end the draining of another one',
  );
}

/**
 * Its tables stay where they are. Deleted projects without events there are forgotten.
 *
 * @throws GatewayError `not_found`; `conflict` if a project is there or moves, or if it is the
 *   default shard; `shard_unusable` if deleted projects are there and its database is away
 */
export async function removeShard(shards: Shards, name: string): Promise<void> {
  const { control } = shards;
  await requireShard(control.pool, name);
  if (name === DEFAULT_SHARD)
    throw conflict(
      'the default shard cannot be removed',
      'drain it, so that it gets no new projects',
    );
  const { rows } = await control.pool.query<{ id: string; deleted: boolean }>(
    `select id, deleted_at is not null as deleted from projects
     where shard = $1 or id in (select project_id from project_moves where phase <> 'done' and $1 in (from_shard, to_shard)) order by deleted_at is not null, id`,
    [name],
  );
  const live = rows.filter(({ deleted }) => !deleted);
  const hasEvents = async () => {
    const shard = shards.of(name);
    try {
      return (await shard.database.pool.query('select from events limit 1')).rowCount !== 0;
    } catch (error) {
      throw explainShardError(error, shard);
    }
  };
  if (live.length > 0)
    throw conflict(
      `${live.length === 1 ? 'a project has' : `${live.length} projects have`} events on the shard ${name}, or would get them there: ${live
        .slice(0, 3)
        .map(({ id }) => id)
        .join(', ')}${live.length > 3 ? ', …' : ''}`,
      'drain it, move them with `gateway shards move`, and wait until `gateway shards list` shows no move',
    );
  if (rows.length > 0 && (await hasEvents()))
    throw conflict(
      `the shard ${name} has events of deleted projects`,
      'wait until their retention ends',
    );
  await control.knex.transaction(async (trx) => {
    await trx.raw('update projects set shard = ? where deleted_at is not null and shard = ?', [
      DEFAULT_SHARD,
      name,
    ]);
    await trx.raw('delete from shards where name = ?', [name]);
  });
}
