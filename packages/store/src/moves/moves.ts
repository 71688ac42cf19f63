import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { GatewayError } from '@gateway/core/errors';
import { timeOfId } from '@gateway/core/events';
import { EVERYTHING } from '../events/project-fences.js';
import { idBound } from '../pagination/log-page.js';
import { withAdvisoryLock, withTransaction } from '../postgres/advisory-lock.js';
import { timeAt } from '../postgres/columns.js';
import type { Querier } from '../postgres/connection.js';
import type { Database } from '../postgres/database.js';
import { LOCK_NOT_AVAILABLE, sqlState } from '../postgres/sqlstate.js';
import { moveCounts } from './move-counts.js';
import { insertRows, moveEnded, moveRange, type MovedRows } from './move-rows.js';
import { copyTurns } from './move-turns.js';
import type { Shards } from '../shards/open-shards.js';

/*
 * A project is moved while it runs. Each step can be repeated, and `project_moves` says how far a
 * move is, so a process that ends leaves the rest to another one.
 *
 * - `stopping`: a fence on the former shard refuses events of the project, and nothing more is
 *   claimed there. The idempotency keys are copied. A fence on the new shard refuses what may be on
 *   the former one: messages that are not newer than its newest. Then the configuration names the
 *   new shard.
 * - `history`: the rows are moved, the newest first, and the fence of the new shard goes down with
 *   them. Nothing changes them on the former shard but attempts that agents had begun. Deliveries
 *   that are due are moved before older ones.
 * - `done`, for a day. The fences stay as long, for a process that hung: they carry the number of
 *   the move, and an earlier one changes nothing.
 *
 * `calling_off` replaces `stopping`, and opens the former shard again.
 */

type Phase = 'stopping' | 'history' | 'calling_off' | 'done';

export interface Move {
  readonly projectId: string;
  readonly number: string;
  readonly from: string;
  readonly to: string;
  readonly phase: Phase;
}

export interface MoveState {
  readonly project_id: string;
  readonly from: string;
  readonly to: string;
  readonly phase: Exclude<Phase, 'done'>;
  readonly begun_at: Date;
  /** On the former shard. Null until they are counted. */
  readonly events_left: number | null;
  /** Earlier events are still on the former shard. */
  readonly copied_to: Date | null;
  readonly seconds_left: number | null;
  readonly error: string | null;
}

const COLUMNS = `project_id as "projectId", number, from_shard as "from", to_shard as "to", phase`;

/** In one process at a time. Undefined if another one has its turn. */
export function takeMoves<T>(
  { sessions }: Pick<Database, 'sessions'>,
  work: () => Promise<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  return withAdvisoryLock(sessions, 'gateway.moves', work, signal);
}

/** Moves that have not ended, and those whose fences are old. */
export async function listMoves(control: Querier): Promise<Move[]> {
  const { rows } = await control.query<Move>({
    name: 'list-moves',
    // Servers know of the switch after three seconds; then nothing is changed on the former shard.
    text: `select ${COLUMNS} from project_moves
           where phase in ('stopping', 'calling_off') or phase = 'history' and coalesce(switched_at, '-infinity') < now() - interval '3 seconds'
             or ended_at < now() - interval '1 day'
           order by number`,
  });
  return rows;
}

/** Without those that have ended. */
export async function readMoveStates(control: Querier, projectId?: string): Promise<MoveState[]> {
  const { rows } = await control.query<MoveState>({
    name: 'move-states',
    text: `select project_id, from_shard as "from", to_shard as "to", phase, begun_at, (events_before - least(events_before, events_copied))::float8 as events_left, copied_to,
             (extract(epoch from now() - switched_at) * (events_before - least(events_before, events_copied)) / nullif(events_copied, 0))::float8 as seconds_left, error
           from project_moves where phase <> 'done' and ($1::uuid is null or project_id = $1) order by number`,
    values: [projectId ?? null],
  });
  return rows;
}

/**
 * A move that was begun to the same shard goes on.
 *
 * @throws GatewayError `conflict` while another move of the project has not ended
 */
export async function beginMove(
  control: Querier,
  { projectId, from, to }: Pick<Move, 'projectId' | 'from' | 'to'>,
): Promise<Move> {
  await control.query(
    `insert into project_moves as known (project_id, from_shard, to_shard, phase) select id, shard, $3, 'stopping' from projects where id = $1 and shard = $2
     on conflict (project_id) do update set number = excluded.number, from_shard = excluded.from_shard, to_shard = excluded.to_shard, phase = excluded.phase,
       begun_at = excluded.begun_at, switched_at = null, ended_at = null, events_before = null, events_copied = 0, copied_to = null, error = null
     where known.phase = 'done'`,
    [projectId, from, to],
  );
  const { rows } = await control.query<Move>(
    `select ${COLUMNS} from project_moves where project_id = $1`,
    [projectId],
  );
  const move = rows[0];
  if (move?.to === to && move.phase !== 'calling_off') return move;
  const isHistory = move?.phase === 'history';
  throw new GatewayError('conflict', {
    sentence: isHistory
      ? `the events of the project are still being moved from the shard ${move.from}`
      : `the project is being moved from the shard ${from} to ${move?.to ?? 'another one'}`,
    fix: isHistory
      ? 'wait until `gateway shards list` no longer shows the move'
      : `call it off with \`gateway shards move ${projectId} ${from}\``,
  });
}

/** False if the project is not on its former shard, or does not move. */
export async function callOffMove(shards: Shards, projectId: string): Promise<boolean> {
  // The number is new, so that a process that goes on with the move changes nothing any more.
  const { rows } = await shards.control.pool.query<Move>(
    `update project_moves set phase = 'calling_off', number = nextval(pg_get_serial_sequence('project_moves', 'number'))
     where project_id = $1 and phase in ('stopping', 'calling_off') returning ${COLUMNS}`,
    [projectId],
  );
  if (!rows[0]) return false;
  await continueMove(shards, rows[0]);
  return true;
}

/**
 * Does the next step. `wait` if the following one must wait for agents, `done` without one.
 *
 * @throws GatewayError `shard_unknown`, and errors of the databases
 */
export async function continueMove(shards: Shards, move: Move): Promise<'more' | 'wait' | 'done'> {
  const { projectId, number, phase } = move;
  const control = shards.control.pool;
  if (phase === 'done') return forget(shards, move);
  const pool = (name: string) => shards.of(name).database.pool;
  const rows = { projectId, number, from: pool(move.from), into: pool(move.to) };
  if (phase === 'history') return moveHistory(control, rows);
  if (phase === 'calling_off') await fence(rows.from, move, null);
  else await stop(rows);
  await control.query(
    phase === 'calling_off'
      ? `update project_moves set phase = 'done', ended_at = now() where project_id = $1 and number = $2 and phase = 'calling_off'`
      : `with m as (
           update project_moves set phase = 'history', switched_at = now(), error = null where project_id = $1 and number = $2 and phase = 'stopping' returning project_id, to_shard
         ),
         n as (update notifications n set raised_by = null from m where n.project_id = m.project_id and n.ended_at is null)
         update projects p set shard = m.to_shard from m where p.id = m.project_id`,
    [projectId, number],
  );
  return phase === 'calling_off' ? 'done' : 'wait';
}

/** Changes nothing once a later move has begun. */
async function updateMove(
  control: Querier,
  { projectId, number }: Pick<Move, 'projectId' | 'number'>,
  set: string,
  ...values: readonly unknown[]
): Promise<void> {
  const text = `update project_moves set ${set} where project_id = $1 and number = $2`;
  await control.query(text, [projectId, number, ...values]);
}

export function noteMoveError(control: Querier, move: Move, error: string): Promise<void> {
  return updateMove(control, move, 'error = $3', error);
}

/** Stops the intake of a project, and copies what must be on the new shard before it goes on. */
async function stop(rows: MovedRows): Promise<void> {
  const { from, into, projectId } = rows;
  await fence(from, rows, EVERYTHING);
  // A key that was used again since has a later end.
  await copyAll(
    rows,
    'idempotency_keys',
    'key',
    '(project_id, key) do update set event_id = excluded.event_id, expires_at = excluded.expires_at where idempotency_keys.expires_at < excluded.expires_at',
  );
  await copyAll(rows, 'message_arrivals', 'id', 'do nothing');
  await copyTurns(rows);
  const newest = (table: string) =>
    `(select id from ${table} where project_id = $1 order by id desc limit 1)`;
  const { rows: found } = await from.query<{ id: string }>(
    `select id from (${newest('events')} union all ${newest('quarantined_messages')}) e order by id desc limit 1`,
    [projectId],
  );
  await fence(into, rows, found[0] ? idBound(timeOfId(found[0].id), 'f') : null);
}

/** For the statements that accept events now, which last milliseconds. */
const LOCK_TIMEOUT_MS = 500;
const TRIES = 20;

/**
 * Once per move. When it resolves, all that the shard has accepted and claimed of the project is
 * committed, because these statements read the table.
 */
async function fence(
  pool: Pool,
  { projectId, number }: Pick<Move, 'projectId' | 'number'>,
  through: string | null,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      const set = async (client: Querier) => {
        await client.query('lock table project_fences in access exclusive mode');
        await client.query(
          `insert into project_fences as known (project_id, move_number, through) values ($1, $2, $3)
           on conflict (project_id) do update set move_number = excluded.move_number, through = excluded.through, is_counted = false
             where known.move_number < excluded.move_number`,
          [projectId, number, through],
        );
      };
      const begin = `begin; set local lock_timeout = ${LOCK_TIMEOUT_MS}`;
      return await withTransaction(pool, set, { begin });
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE || tries === TRIES) throw error;
      await sleep(LOCK_TIMEOUT_MS);
    }
  }
}

const KEYS = 5_000;

async function copyAll(
  { from, into, projectId }: MovedRows,
  table: string,
  key: string,
  conflict: string,
): Promise<void> {
  for (let after: string | undefined; ;) {
    const { rows } = await from.query<{ key: string; row: string }>(
      `select ${key}::text as key, row_to_json(t)::text as row from ${table} t where project_id = $1 ${after === undefined ? '' : `and ${key} > $2`} order by ${key} limit ${KEYS}`,
      after === undefined ? [projectId] : [projectId, after],
    );
    await insertRows(into, table, rows, conflict);
    if (rows.length < KEYS) return;
    after = rows.at(-1)!.key;
  }
}

/** Events and quarantined messages per step. */
const SLICE = 1_000;
/** Due within a minute and moved before their turn, per step. */
const DUE = 20;
const LAST_MS = 2 ** 48 - 1;

async function moveHistory(control: Pool, rows: MovedRows): Promise<'more' | 'wait' | 'done'> {
  const { from, into, projectId, number } = rows;
  const ref = [projectId, number];
  const { rows: states } = await control.query<{ isFirst: boolean; switchedAt: Date }>(
    `select events_before is null and events_copied = 0 as "isFirst", coalesce(switched_at, begun_at) as "switchedAt" from project_moves where project_id = $1 and number = $2 and phase = 'history'`,
    ref,
  );
  if (!states[0]) return 'done';
  if (states[0].isFirst) await countEvents(control, rows);
  const fenceOf = () =>
    into.query<{ through: string | null }>(
      'select through from project_fences where project_id = $1 and move_number = $2',
      ref,
    );
  let [found] = (await fenceOf()).rows;
  // A project that an earlier version has moved has no fences.
  if (!found) {
    await stop(rows);
    [found] = (await fenceOf()).rows;
  }
  if (!found) throw moveEnded(projectId, number);
  const { through } = found;
  const progress = `events_copied = events_copied + $3, copied_to = ${timeAt('$4::bigint')}, error = null`;
  const note = (events: number, ms: number | null) =>
    updateMove(control, rows, progress, events, ms);
  if (through === null) {
    await note(await moveRange(rows, { fromMs: 0, toMs: LAST_MS }), null);
    return endMove(control, rows, states[0].switchedAt);
  }

  const { rows: due } = await from.query<{ ms: number }>(
    `select distinct (extract(epoch from occurred_at) * 1000)::float8 as ms from (
       select occurred_at from event_deliveries where project_id = $1 and status in ('scheduled', 'retry') and next_attempt_at <= now() + interval '1 minute'
       order by next_attempt_at limit ${DUE}
     ) d`,
    [projectId],
  );
  let moved = 0;
  for (const { ms } of due) moved += await moveRange(rows, { fromMs: ms, toMs: ms });

  const newest = (table: string) =>
    `(select id from ${table} where project_id = $1 and id <= $2 order by id desc limit ${SLICE})`;
  const { rows: slice } = await from.query<{ id: string }>(
    `select id from (${newest('events')} union all ${newest('quarantined_messages')}) e order by id desc offset ${SLICE - 1} limit 1`,
    [projectId, through],
  );
  const fromMs = slice[0] ? timeOfId(slice[0].id) : 0;
  const range = { fromMs, toMs: timeOfId(through) };
  moved += await moveRange(rows, range);
  // An event that was replayed waits for its deliveries that are being sent.
  const { rowCount: pending } = await from.query(
    `select from events where project_id = $1 and id >= $2 and id <= $3 and status = 'pending' limit 1`,
    [projectId, idBound(fromMs, '0'), through],
  );
  if (pending === 0)
    await into.query(
      'update project_fences set through = $3 where project_id = $1 and move_number = $2 and through is not null',
      [...ref, fromMs === 0 ? null : idBound(fromMs - 1, 'f')],
    );
  await note(moved, fromMs === 0 ? null : fromMs);
  return pending === 0 ? 'more' : 'wait';
}

/** Unless that takes too long. */
async function countEvents(control: Pool, rows: MovedRows): Promise<void> {
  const counting = rows.from.query<{ n: string }>(
    'select count(*) as n from events where project_id = $1',
    [rows.projectId],
  );
  const found = await counting.catch(() => undefined);
  if (found) await updateMove(control, rows, 'events_before = $3', found.rows[0]!.n);
}

/** Their rows must be gone in the end. */
const LOGS = [
  'events',
  'event_deliveries',
  'delivery_attempts',
  'event_messages',
  'quarantined_messages',
];

/** Waits until all rows have left the former shard. */
async function endMove(control: Pool, rows: MovedRows, switchedAt: Date): Promise<'wait' | 'done'> {
  const { from, projectId, number } = rows;
  const { rows: left } = await from.query<{ any: boolean }>(
    `select ${LOGS.map((table) => `exists (select from ${table} where project_id = $1)`).join(' or ')} as any`,
    [projectId],
  );
  if (left[0]!.any || !(await moveCounts(rows, switchedAt))) return 'wait';
  for (const table of [
    'idempotency_keys',
    'message_arrivals',
    'ordered_deliveries',
    'ordered_keys',
  ])
    await from.query(`delete from ${table} where project_id = $1`, [projectId]);
  await control.query(
    // Agents of the former shard forget the project when it changes.
    `with m as (
       update project_moves set phase = 'done', ended_at = now() where project_id = $1 and number = $2 and phase = 'history' returning project_id
     )
     update projects p set shard = p.shard from m where p.id = m.project_id`,
    [projectId, number],
  );
  return 'done';
}

async function forget(shards: Shards, { projectId, number, from, to }: Move): Promise<'done'> {
  for (const { name, database } of shards.all)
    if (name === from || name === to)
      await database.pool.query(
        'delete from project_fences where project_id = $1 and move_number <= $2',
        [projectId, number],
      );
  await shards.control.pool.query(
    `delete from project_moves where project_id = $1 and number = $2 and phase = 'done'`,
    [projectId, number],
  );
  return 'done';
}
