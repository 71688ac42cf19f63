import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { withConnection } from '../postgres/advisory-lock.js';
import { LOCK_NOT_AVAILABLE, sqlState } from '../postgres/sqlstate.js';
import type { ShardPlanes } from './open-shards.js';

/** The maximum wait for the statements that accept events now, which last milliseconds. */
const LOCK_TIMEOUT_MS = 500;
const TRIES = 20;

interface Move {
  readonly projectId: string;
  readonly to: string;
  /** Higher than that of every earlier move of the project. */
  readonly number: string;
}

/**
 * Moves a project to another shard: new events go there at once, and what the former shard has is
 * delivered and kept there. Returns false if the project is on the shard already, or does not exist.
 *
 * Three commits in two databases. First the former shard refuses new events of the project, then
 * the new one accepts them, and then the configuration names it. A process that ends in between
 * leaves a project whose events wait: an agent or another call (`finishMoves`) ends the move. Moves
 * are numbered, because a process may hang between two commits: when it goes on, it cannot change
 * what a later move has done.
 *
 * @param pools.from the former shard
 * @param pools.into the new shard
 */
export async function moveProject(
  pools: { readonly control: Pool; readonly from: Pool; readonly into: Pool },
  { projectId, from, to }: Omit<Move, 'number'> & { readonly from: string },
): Promise<boolean> {
  if (from === to) return false;
  const move = { projectId, to, number: await nextNumber(pools, projectId) };
  await refuseEvents(pools.from, move);
  await acceptAgain(pools.into, move);
  return switchShard(pools, from, move);
}

/**
 * Calls off a move away from a shard that a process has begun and not ended: the shard accepts events
 * of the project again. The number of the move is used up first, so that no process can end it.
 * Returns false if one has ended it.
 */
export async function callOffMove(
  { control, data, shard }: ShardPlanes,
  projectId: string,
): Promise<boolean> {
  const begun = await numberIn(data, 'moved_projects where project_id = $1', projectId);
  if (begun === 0n) return true;
  const { rowCount } = await control.query(
    'update projects set move_number = greatest(move_number, $3) where id = $1 and shard = $2',
    [projectId, shard, String(begun)],
  );
  if (rowCount === 0) return false;
  await data.query('delete from moved_projects where project_id = $1 and move_number <= $2', [
    projectId,
    String(begun),
  ]);
  return true;
}

/** Returns a number higher than those of the moves that ended, or began on these shards. */
async function nextNumber(
  { control, from, into }: { readonly control: Pool; readonly from: Pool; readonly into: Pool },
  projectId: string,
): Promise<string> {
  const numbers = await Promise.all([
    numberIn(control, 'projects where id = $1', projectId),
    numberIn(from, 'moved_projects where project_id = $1', projectId),
    numberIn(into, 'moved_projects where project_id = $1', projectId),
  ]);
  return String(1n + numbers.reduce((most, it) => (it > most ? it : most)));
}

async function numberIn(pool: Pool, rowsOf: string, projectId: string): Promise<bigint> {
  const { rows } = await pool.query<{ number: string }>(
    `select move_number as number from ${rowsOf}`,
    [projectId],
  );
  return BigInt(rows[0]?.number ?? 0);
}

/**
 * Ends moves away from a shard that a process has begun and not ended, and undoes what a process did
 * that hung until a later move had ended. Returns the number of moved projects.
 *
 * @param poolOf returns the pool of a shard
 */
export async function finishMoves(
  { control, data, shard }: ShardPlanes,
  poolOf: (name: string) => Pool,
): Promise<number> {
  const { rows } = await data.query<Move>({
    name: 'all-moved',
    text: 'select project_id as "projectId", to_shard as "to", move_number as number from moved_projects',
  });
  if (rows.length === 0) return 0;
  const { rows: here } = await control.query<{ id: string; last: string }>({
    name: 'moves-left',
    text: 'select id, move_number as last from projects where id = any ($1::uuid[]) and shard = $2',
    values: [rows.map(({ projectId }) => projectId), shard],
  });
  const lastOf = new Map(here.map(({ id, last }) => [id, BigInt(last)]));
  const left = rows.filter(({ projectId }) => lastOf.has(projectId));
  const isLater = ({ projectId, number }: Move) => BigInt(number) > lastOf.get(projectId)!;
  const moves = left.filter(isLater);
  const undone = left.filter((move) => !isLater(move));
  if (undone.length > 0)
    await data.query(
      'delete from moved_projects m using unnest($1::uuid[], $2::bigint[]) u(id, number) where m.project_id = u.id and m.move_number = u.number',
      [undone.map(({ projectId }) => projectId), undone.map(({ number }) => number)],
    );
  const ended = moves.map(async (move) => {
    await acceptAgain(poolOf(move.to), move);
    return switchShard({ control, from: data }, shard, move);
  });
  // A shard that does not answer holds up the moves to it alone.
  const results = await Promise.allSettled(ended);
  const failed = results.find((it) => it.status === 'rejected');
  if (failed) throw failed.reason;
  return results.filter((it) => it.status === 'fulfilled' && it.value).length;
}

/**
 * Makes a shard refuse new events of a project. When it resolves, all that the shard has accepted of
 * the project is committed, because statements that accept events read this table.
 */
async function refuseEvents(pool: Pool, { projectId, to, number }: Move): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await withConnection(pool, async (client) => {
        await client.query(`begin; set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await client.query('lock table moved_projects in access exclusive mode');
        await client.query(
          `insert into moved_projects as known (project_id, to_shard, move_number) values ($1, $2, $3)
           on conflict (project_id) do update set to_shard = excluded.to_shard, move_number = excluded.move_number
             where known.move_number < excluded.move_number`,
          [projectId, to, number],
        );
        await client.query('commit');
      });
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE || tries === TRIES) throw error;
      await sleep(LOCK_TIMEOUT_MS);
    }
  }
}

/** Makes a shard accept new events of a project that moved away before this move. */
async function acceptAgain(pool: Pool, { projectId, number }: Move): Promise<void> {
  await pool.query('delete from moved_projects where project_id = $1 and move_number < $2', [
    projectId,
    number,
  ]);
}

/**
 * Names the new shard in the configuration. `moved_at` is the time of the move or, if the former
 * shards have a message dated later, that of the message: what is dated after it cannot be there.
 */
async function switchShard(
  { control, from: pool }: { readonly control: Pool; readonly from: Pool },
  from: string,
  { projectId, to, number }: Move,
): Promise<boolean> {
  // Ids begin with the time of the message.
  const latest = (table: string) =>
    `(select occurred_at from ${table} where project_id = $1 order by id desc limit 1)`;
  const { rows } = await pool.query<{ at: string | null }>(
    `select greatest(${latest('events')}, ${latest('quarantined_messages')})::text as at`,
    [projectId],
  );
  const { rowCount } = await control.query(
    `update projects set shard = $3, former_shards = array_prepend($2, array_remove(former_shards, $3)), moved_at = greatest(moved_at, now(), $5), move_number = $4
     where id = $1 and shard = $2 and move_number < $4`,
    [projectId, from, to, number, rows[0]!.at],
  );
  return rowCount === 1;
}

/** The tables with rows of a project other than events and deliveries, which retention deletes. */
const LEFT_BEHIND = [
  'idempotency_keys',
  'message_arrivals',
  'event_counts',
  'event_delivery_counts',
  'delivery_attempt_counts',
  'count_changes',
  'activity',
  'backlog_samples',
  'moved_projects',
];
/** Longer than sources redeliver. */
const FORGET_AFTER = '2 days';

/**
 * Forgets a shard as a former one of projects of which retention has left nothing there, and whose
 * idempotency keys have expired. Returns the number of projects.
 */
export async function forgetFormerShard({ control, data, shard }: ShardPlanes): Promise<number> {
  const { rows: moved } = await control.query<{ id: string }>(
    `select id from projects where shard <> $1 and $1 = any (former_shards) and moved_at < now() - interval '${FORGET_AFTER}'`,
    [shard],
  );
  if (moved.length === 0) return 0;
  const { rows: empty } = await data.query<{ id: string }>(
    `select id from unnest($1::uuid[]) u(id)
     where not exists (select from events where project_id = u.id) and not exists (select from event_deliveries where project_id = u.id)
       and not exists (select from quarantined_messages where project_id = u.id)
       and not exists (select from idempotency_keys where project_id = u.id and expires_at > now())`,
    [moved.map(({ id }) => id)],
  );
  const ids = empty.map(({ id }) => id);
  if (ids.length === 0) return 0;
  await control.query(
    'update projects set former_shards = array_remove(former_shards, $1) where id = any ($2::uuid[]) and shard <> $1',
    [shard, ids],
  );
  for (const table of LEFT_BEHIND)
    await data.query(`delete from ${table} where project_id = any ($1::uuid[])`, [ids]);
  return ids.length;
}
