// Events and deliveries are written far more often than listed, so there are two indexes per table
// instead of one per combination of filters: a filter that is not given becomes all of its values,
// and a page merges the groups. The order names all columns of the index. With an equality on each
// and an order by id alone, the planner takes the primary key where statistics say that most rows
// match, and reads a million rows for the few that do.
import type { Pool } from 'pg';
import { clampTime, timeOfId } from '@gateway/core/events';
import { readPage, uuidOfHex, type PageRequest, type PageResult, type Seek } from './page.js';

/** `add` returns a placeholder. */
export class Values {
  readonly list: unknown[] = [];

  add(value: unknown): string {
    return `$${this.list.push(value)}`;
  }

  where(value: unknown, condition: (placeholder: string) => string): string[] {
    return value === undefined ? [] : [condition(this.add(value))];
  }
}

/** Broker times from `from` to `to`, inclusive. */
export interface Span {
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
  /** At least eight hex digits, with or without hyphens. */
  readonly idPrefix?: string | undefined;
}

/** Index prefixes to merge: the index on (project, keys…, id) has each group in id order. */
export interface Groups {
  /**
   * The columns between project and id, each with its wanted values and their type. The index has
   * no column without values.
   */
  readonly keys: readonly (readonly [
    column: string,
    wanted: readonly unknown[] | undefined,
    type: string,
  ])[];
  readonly predicate?: string;
}

/** `e` is a row of the table. */
export interface LogQuery {
  readonly table: 'events' | 'event_deliveries' | 'quarantined_messages';
  readonly projectId: string;
  readonly span: Span;
  readonly groups?: Groups | undefined;
  /**
   * For which an index finds only a few rows, which are then sorted. With `groups`, they select the
   * rows that the groups' indexes exclude.
   */
  readonly few?: ((values: Values) => string[]) | undefined;
  readonly columns: string;
  readonly joins?: string;
}

/**
 * By id. At any depth, makes one index probe per group and partition in the span, and reads the
 * rows of the page. No lock.
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

/** Rows that may be on the page: the first of each group, and all that `few` selects. */
export function hitsOf(
  { table, groups, few }: LogQuery,
  { order, limit }: Seek,
  bounds: Bounds,
  values: Values,
): string {
  const parts: string[] = [];
  if (groups) {
    const { predicate = 'true' } = groups;
    const keys = groups.keys.filter(([, wanted]) => wanted !== undefined);
    const relations = keys.map(
      ([, wanted, type], k) => `unnest(${values.add(wanted)}::${type}[]) as v${k}(value)`,
    );
    const columns = [...keys.map(([column]) => column), 'e.id'];
    const named = columns.map((column, k) => `${column} as k${k}`);
    const row = (id: string) => `(${[...keys.map((_, k) => `v${k}.value`), id].join(', ')})`;
    const [near, far] =
      order === 'asc'
        ? [`>= ${row(bounds.low)}`, `<= ${row(bounds.high)}`]
        : [`<= ${row(bounds.high)}`, `>= ${row(bounds.low)}`];
    // The row comparisons and the order leave the index on these columns as the only usable one;
    // otherwise, the planner might read all rows by primary key. The far end is checked after the
    // limit: in the inner query, the scan of a short group would continue into the next value of
    // the first column, over any number of entries.
    parts.push(`select hit.id, hit.occurred_at from ${relations.join(' cross join ')} cross join lateral (
        select e.id, e.occurred_at, ${named.join(', ')} from ${table} e
        where ${[...bounds.days, predicate].join(' and ')} and (${columns.join(', ')}) ${near}
        order by ${columns.map((column) => `${column} ${order}`).join(', ')} limit ${atMost(limit)}) hit
      where (${columns.map((_, k) => `hit.k${k}`).join(', ')}) ${far}`);
  }
  // `offset 0` keeps the planner from reading the primary key in order.
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

/** Hides the limit: with a visible one but no statistics, the planner would sort all rows. */
function atMost(rows: number): string {
  return `(select ${rows})`;
}

export interface Bounds {
  /** On the project and whole days: they prune partitions without filtering the rows of others. */
  readonly days: readonly string[];
  /** Placeholders of ids, inclusive. `days` excludes the cursor's own id. */
  readonly low: string;
  readonly high: string;
  readonly rows: string;
}

/** Ids start with the time: the time prunes partitions, and the id positions the index scan. */
export function boundsOf(
  { projectId, span }: LogQuery,
  { after, order }: Seek,
  values: Values,
): Bounds {
  const project = `e.project_id = ${values.add(projectId)}`;
  const from = span.from && clampTime(span.from.getTime());
  const to = span.to && clampTime(span.to.getTime());
  const prefix = span.idPrefix?.replaceAll('-', '').toLowerCase() ?? '';
  const startOf = (id: string, fill: string) =>
    prefix === '' ? id : uuidOfHex(prefix.padEnd(32, fill));
  const fromIds = latest(idBound(from ?? 0, '0'), startOf(FIRST_ID, '0'));
  const toIds = earliest(to === undefined ? LAST_ID : idBound(to, 'f'), startOf(LAST_ID, 'f'));
  // The tighter of the span's bound and the cursor applies.
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

/** In epoch milliseconds, of a partition's start. */
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

/** The first (`0`) or last (`f`) id of a millisecond. */
export function idBound(ms: number, fill: '0' | 'f'): string {
  return uuidOfHex(ms.toString(16).padStart(12, '0') + fill.repeat(20));
}

/** In id order, from 0 to 1. */
export function progressAt(id: string, fromMs: number, toMs: number): number {
  return Math.min(1, Math.max(0, timeOfId(id) - fromMs) / Math.max(1, toMs - fromMs));
}
