import type { Pool } from 'pg';
import { idBound } from '../pagination/log-page.js';
import { withConnection, withLockTimeout, withTransaction } from '../postgres/advisory-lock.js';
import { sharesTime } from '../events/event-ref.js';
import { opaque, timeAt } from '../postgres/columns.js';
import type { Querier } from '../postgres/connection.js';

export interface MovedRows {
  readonly projectId: string;
  readonly number: string;
  readonly from: Pool;
  readonly into: Pool;
}

/** Broker times in epoch milliseconds, with which all ids begin. */
export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

const [PAGE_ROWS, PAGE_BYTES] = [1_000, 8 * 1024 * 1024];

interface Table {
  readonly name: string;
  /** Begins with the time of the message. */
  readonly id: string;
  readonly key: readonly string[];
  readonly bytes: string;
}

const EVENTS: Table = {
  name: 'events',
  id: 'id',
  key: ['id', 'occurred_at'],
  bytes: 'octet_length(headers) + coalesce(octet_length(message), 0) + octet_length(data)',
};
const DELIVERIES: Table = {
  name: 'event_deliveries',
  id: 'id',
  key: ['id', 'occurred_at'],
  bytes: 'coalesce(octet_length(transformed_data), 0)',
};
/** Tables without an effect on what is sent. */
const OTHERS: readonly Table[] = [
  {
    name: 'delivery_attempts',
    id: 'event_delivery_id',
    key: ['event_delivery_id', 'id', 'occurred_at'],
    bytes: 'coalesce(octet_length(response_body), 0)',
  },
  {
    name: 'event_messages',
    id: 'id',
    key: ['id', 'occurred_at'],
    bytes: 'coalesce(octet_length(raw), 0)',
  },
  {
    name: 'quarantined_messages',
    id: 'id',
    key: ['id', 'occurred_at'],
    bytes: 'octet_length(raw) + coalesce(octet_length(edited_raw), 0)',
  },
];

/** Its values are the parameters from 2. The times select partitions. */
const inRange = (id: string) =>
  `t.project_id = $1 and ${id} >= $2 and ${id} <= $3 and t.occurred_at >= ${timeAt('$4::bigint')} and t.occurred_at <= ${timeAt('$5::bigint')}`;

const valuesOf = (projectId: string, { fromMs, toMs }: TimeRange) => [
  projectId,
  idBound(fromMs, '0'),
  idBound(toMs, 'f'),
  fromMs,
  toMs,
];

const HAS_DELIVERIES = `exists (select from event_deliveries d where d.project_id = t.project_id and d.occurred_at = t.occurred_at and d.event_id = t.id
  and ${sharesTime('d.id', 't.id')})`;

/**
 * Moves events with all that belongs to them. On the former shard, all is unchanged meanwhile but
 * deliveries that an agent has claimed: these stay, with their events, for a later call. An event
 * is copied before its deliveries, which agents claim at once, and a pending one after them,
 * because a replay is not sent to endpoints that have a delivery. Returns the number of events that
 * left the former shard.
 */
export async function moveRange(move: MovedRows, range: TimeRange): Promise<number> {
  const values = valuesOf(move.projectId, range);
  const allOf = (table: Table, condition = 'true') =>
    movePages(move, table, `${inRange(`t.${table.id}`)} and ${condition}`, values);
  await ensureDays(move, values);
  const copied = await copyEvents(move, values);
  for (const table of OTHERS) await allOf(table);
  await allOf(DELIVERIES, `t.status <> 'processing'`);
  const isPending = `${opaque(`t.status = 'pending'`)} and not ${HAS_DELIVERIES}`;
  const moved = await allOf(EVENTS, isPending);
  const { rowCount } = await move.from.query(
    `delete from events t where ${inRange('t.id')} and t.id = any ($6::uuid[]) and not ${HAS_DELIVERIES}`,
    [...values, copied],
  );
  return moved + rowCount!;
}

/** For the locks of new partitions. Without one, rows go to the default partition. */
const DAY_LOCK_MS = 2_000;

/** A new shard has only the partitions since it was added. */
async function ensureDays({ from, into }: MovedRows, values: readonly unknown[]): Promise<void> {
  const { rows } = await from.query<{ day: string }>(
    `select distinct to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD') as day from events t where ${inRange('t.id')}`,
    [...values],
  );
  for (const { day } of rows)
    await withConnection(into, (client) =>
      withLockTimeout(client, DAY_LOCK_MS, () =>
        client.query('select ensure_day($1::date)', [day]),
      ),
    );
}

/** Without pending ones. Returns their ids. */
async function copyEvents({ from, into }: MovedRows, values: readonly unknown[]) {
  const ids: string[] = [];
  for (;;) {
    const { rows } = await from.query<{ id: string; row: string }>(
      `select id, row_to_json(t)::text as row from (
         select *, sum(${EVENTS.bytes}) over (order by id rows between unbounded preceding and 1 preceding) as before
         from (select * from events t where ${inRange('t.id')} and t.id > $6 and t.status <> 'pending' order by id limit ${PAGE_ROWS}) e
       ) t where before is null or before < ${PAGE_BYTES} order by id`,
      [...values, ids.at(-1) ?? values[1]],
    );
    if (rows.length === 0) return ids;
    await insertRows(into, EVENTS.name, rows);
    ids.push(...rows.map(({ id }) => id));
  }
}

export async function movePages(...args: Parameters<typeof movePage>): Promise<number> {
  for (let moved = 0; ;) {
    const { rows, isMore } = await movePage(...args);
    moved += rows;
    if (!isMore) return moved;
  }
}

/**
 * Deletes a page of rows from the former shard, and commits this when the new one has them. If the
 * process ends in between, the next call finds them on both and deletes them.
 *
 * @param where selects the rows `t` with `values`, of which the first is the project
 */
async function movePage(
  { from, into, projectId, number }: MovedRows,
  { name, key, bytes }: Omit<Table, 'id'>,
  where: string,
  values: readonly unknown[],
): Promise<{ readonly rows: number; readonly isMore: boolean }> {
  const columns = key.join(', ');
  const isSame = key.map((column) => `t.${column} = p.${column}`).join(' and ');
  return withTransaction(from, async (client) => {
    await holdMove(client, projectId, number);
    const { rows } = await client.query<{ row: string }>(
      `with page as materialized (
         select ${columns} from (
           select ${columns}, sum(bytes) over (order by ${columns} rows between unbounded preceding and 1 preceding) as before
           from (select ${columns}, ${bytes} as bytes from ${name} t where ${where} order by ${columns} limit ${PAGE_ROWS}) t
         ) t where before is null or before < ${PAGE_BYTES}
       ),
       gone as (delete from ${name} t using page p where ${isSame} and ${where} returning t.*)
       select row_to_json(gone)::text as row from gone`,
      [...values],
    );
    await insertRows(into, name, rows);
    // As text, rows have at least a quarter of their bytes.
    const size = rows.reduce((sum, { row }) => sum + row.length, 0);
    return {
      rows: rows.length,
      isMore: rows.length === PAGE_ROWS || size >= PAGE_BYTES / 4,
    };
  });
}

/**
 * Locks the fence, so that one process at a time moves rows. Throws `moveEnded` if a later move has
 * begun.
 */
export async function holdMove(client: Querier, projectId: string, number: string): Promise<void> {
  const { rowCount } = await client.query(
    'select from project_fences where project_id = $1 and move_number = $2 for update',
    [projectId, number],
  );
  if (rowCount === 0) throw moveEnded(projectId, number);
}

export function moveEnded(projectId: string, number: string): Error {
  return new Error(`the move ${number} of the project ${projectId} has ended`);
}

/** Each row is a JSON object. */
export async function insertRows(
  pool: Querier,
  table: string,
  rows: readonly { readonly row: string }[],
  conflict = 'do nothing',
): Promise<void> {
  if (rows.length > 0)
    await pool.query(
      `insert into ${table} select r.* from unnest($1::text[]) j(row) cross join lateral json_populate_record(null::${table}, j.row::json) r on conflict ${conflict}`,
      [rows.map(({ row }) => row)],
    );
}
