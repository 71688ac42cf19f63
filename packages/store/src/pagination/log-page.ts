import type { Pool } from 'pg';
import { clampTime, timeOfId } from '@gateway/core/events';
import { readPage, uuidOfHex, type PageRequest, type PageResult, type Seek } from './page.js';

/**
 * Parameters of a statement. `add` returns a placeholder; `where` returns no condition for an
 * undefined value.
 */
export class Values {
  readonly list: unknown[] = [];

  add(value: unknown): string {
    return `$${this.list.push(value)}`;
  }

  /** Returns the relation of these values. */
  each(list: readonly unknown[], type: string): string {
    return `unnest(${this.add(list)}::${type}[])`;
  }

  where(value: unknown, condition: (placeholder: string) => string): string[] {
    return value === undefined ? [] : [condition(this.add(value))];
  }
}

/** Broker times, inclusive, and a prefix of the ids. */
export interface Span {
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
  /** At least eight hex digits, with or without hyphens. */
  readonly idPrefix?: string | undefined;
}

/** Groups of rows with equal `keys`, each in id order in an index on project, columns and id. */
export interface Groups {
  /**
   * The columns of the index between project and id, with the relation `v(value)` of the requested
   * values.
   */
  readonly keys: readonly { readonly column: string; readonly values: string }[];
  readonly predicate?: string;
}

/** `e` is a row of the table. */
export interface LogQuery {
  readonly table: 'events' | 'event_deliveries' | 'quarantined_messages';
  readonly projectId: string;
  readonly span: Span;
  /** The groups to merge; undefined: all rows of the project. */
  readonly groups?: ((values: Values) => Groups) | undefined;
  /**
   * Conditions for which an index finds few rows to sort. With `groups`: rows that their indexes
   * exclude.
   */
  readonly few?: ((values: Values) => string[]) | undefined;
  readonly columns: string;
  readonly joins?: string;
}

/**
 * Returns a page by id. Cost: one index probe per partition in the span and group, and the rows of
 * the page, at any depth. No lock.
 */
export function readLog<Row extends { readonly id: string }>(
  pool: Pool,
  query: LogQuery,
  page: PageRequest,
): Promise<PageResult<Row>> {
  return readPage<Row>(page, async (seek) => {
    const values = new Values();
    const { table, columns, joins = '' } = query;
    const order = `order by e.id ${seek.order}`;
    const bounds = boundsOf(query, seek, values);
    const { rows } = await pool.query<Row>(
      `with hits as (select * from (${hitsOf(query, seek, bounds, values)}) e ${order} limit ${seek.limit})
       select ${columns} from hits join ${table} e on e.project_id = $1 and e.id = hits.id and e.occurred_at = hits.occurred_at ${joins} ${order}`,
      values.list,
    );
    return rows;
  });
}

/** Queries ids and times: the first rows of each group, all of the few. */
function hitsOf(
  { table, groups, few }: LogQuery,
  { order, limit }: Seek,
  bounds: Bounds,
  values: Values,
): string {
  const parts: string[] = [];
  if (groups) {
    const { keys, predicate = 'true' } = groups(values);
    const columns = [...keys.map(({ column }) => column), 'e.id'];
    const named = columns.map((column, k) => `${column} as k${k}`);
    const row = (id: string) => `(${[...keys.map((_, k) => `v${k}.value`), id].join(', ')})`;
    const [near, far] =
      order === 'asc'
        ? [`>= ${row(bounds.low)}`, `<= ${row(bounds.high)}`]
        : [`<= ${row(bounds.high)}`, `>= ${row(bounds.low)}`];
    // Row comparisons and ordering leave only the index on these columns: by its statistics the
    // planner could choose the primary key and read all rows. The far end is checked after the
    // limit: inside, the scan of a short group would continue to the next value of the first
    // column, over any number of entries.
    parts.push(`select hit.id, hit.occurred_at from ${keys.map(({ values: relation }, k) => `${relation} as v${k}(value)`).join(' cross join ')} cross join lateral (
        select e.id, e.occurred_at, ${named.join(', ')} from ${table} e
        where ${[...bounds.days, predicate].join(' and ')} and (${columns.join(', ')}) ${near}
        order by ${columns.map((column) => `${column} ${order}`).join(', ')} limit ${atMost(limit)}) hit
      where (${columns.map((_, k) => `hit.k${k}`).join(', ')}) ${far}`);
  }
  // A fence: otherwise the planner could read the primary key in order.
  if (few)
    parts.push(
      `select e.id, e.occurred_at from ${table} e where ${[bounds.rows, ...few(values)].join(' and ')} offset 0`,
    );
  if (parts.length === 0)
    parts.push(
      `select e.id, e.occurred_at from ${table} e where ${bounds.rows} order by e.id ${order} limit ${atMost(limit)}`,
    );
  return parts.map((part) => `(${part})`).join(' union all ');
}

/**
 * Hides the limit from the planner, which then chooses the index scan: without statistics it would
 * sort all rows.
 */
function atMost(rows: number): string {
  return `(select ${rows})`;
}

interface Bounds {
  /**
   * Conditions on project and whole days, which prune partitions without filtering rows in the
   * others.
   */
  readonly days: readonly string[];
  /** Placeholders of the inclusive bounds; `days` excludes the cursor's id. */
  readonly low: string;
  readonly high: string;
  readonly rows: string;
}

/** Ids start with the time: a bound on both prunes partitions and positions the index scan. */
function boundsOf({ projectId, span }: LogQuery, { after, order }: Seek, values: Values): Bounds {
  const project = `e.project_id = ${values.add(projectId)}`;
  const from = span.from && clampTime(span.from.getTime());
  const to = span.to && clampTime(span.to.getTime());
  const prefix = span.idPrefix?.replaceAll('-', '').toLowerCase() ?? '';
  const startOf = (id: string, fill: string) =>
    prefix === '' ? id : uuidOfHex(prefix.padEnd(32, fill));
  const fromIds = latest(idBound(from ?? 0, '0'), startOf(FIRST_ID, '0'));
  const toIds = earliest(to === undefined ? LAST_ID : idBound(to, 'f'), startOf(LAST_ID, 'f'));
  // The tighter of span and cursor.
  const low = after !== undefined && order === 'asc' && after > fromIds ? after : fromIds;
  const high = after !== undefined && order === 'desc' && after < toIds ? after : toIds;
  const days = [project, ...values.where(after, (it) => `e.id <> ${it}::uuid`)];
  const firstDayMs = dayOf(low);
  const nextDayMs = dayOf(high) + DAY_MS;
  if (firstDayMs > 0) days.push(`e.occurred_at >= ${values.add(new Date(firstDayMs))}`);
  if (nextDayMs === clampTime(nextDayMs))
    days.push(`e.occurred_at < ${values.add(new Date(nextDayMs))}`);
  const [lowId, highId] = [`${values.add(low)}::uuid`, `${values.add(high)}::uuid`];
  return {
    days,
    low: lowId,
    high: highId,
    rows: [...days, `e.id >= ${lowId}`, `e.id <= ${highId}`].join(' and '),
  };
}

const DAY_MS = 86_400_000;

/** Partitions begin with the UTC day. */
function dayOf(id: string): number {
  const ms = clampTime(timeOfId(id));
  return ms - (ms % DAY_MS);
}

const FIRST_ID = uuidOfHex('0'.repeat(32));
const LAST_ID = uuidOfHex('f'.repeat(32));

function latest(one: string, other: string): string {
  return one > other ? one : other;
}

function earliest(one: string, other: string): string {
  return one < other ? one : other;
}

/** Returns the first (`0`) or last (`f`) id of a millisecond. */
export function idBound(ms: number, fill: '0' | 'f'): string {
  return uuidOfHex(ms.toString(16).padStart(12, '0') + fill.repeat(20));
}

/** Returns the progress of a scan by ids, 0 to 1. */
export function progressAt(id: string, fromMs: number, toMs: number): number {
  return Math.min(1, Math.max(0, timeOfId(id) - fromMs) / Math.max(1, toMs - fromMs));
}
