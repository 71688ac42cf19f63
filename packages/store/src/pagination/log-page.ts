import type { Pool } from 'pg';
import { clampTime, timeOfId } from '@gateway/core/events';
import { readPage, uuidOfHex, type Page, type PageRequest, type Seek } from './page.js';

/** Rows read per page when a filter has no index; the next page continues there, even if this one is not full. */
const SCAN = 10_000;

/** Parameters of a statement. `add` returns the placeholder of a value; `where` returns no condition for a value that is undefined. */
export class Values {
  readonly list: unknown[] = [];

  add(value: unknown): string {
    return `$${this.list.push(value)}`;
  }

  where(value: unknown, condition: (placeholder: string) => string): string[] {
    return value === undefined ? [] : [condition(this.add(value))];
  }
}

/** Time span by broker time, both ends included. */
export interface Span {
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
}

/** A list of one of the big tables; `e` is its row. */
export interface LogQuery {
  readonly table: 'events' | 'event_deliveries' | 'quarantined_messages';
  readonly projectId: string;
  readonly span: Span;
  /** Conditions that an index answers together with project and id. */
  readonly indexed?: (values: Values) => string[];
  readonly filters?: (values: Values) => string[];
  /** Returned columns, and joins by primary key. */
  readonly columns: string;
  readonly joins?: string;
}

/** A page by id. Cost: one index probe per partition in the span and the rows of the page, or at most `SCAN` narrow rows with filters. No lock. */
export function readLog<Row extends { readonly id: string }>(pool: Pool, query: LogQuery, page: PageRequest): Promise<Page<Row>> {
  return readPage<Row>(page, async (seek) => {
    const values = new Values();
    const { indexed, filters } = statementParts(query, seek, values);
    const { table, columns, joins = '' } = query;
    const order = `order by e.id ${seek.order}`;
    if (filters.length === 0) {
      const { rows } = await pool.query<Row>(
        `select ${columns} from (select e.* from ${table} e where ${indexed} ${order} limit ${atMost(seek.limit)}) e ${joins} ${order}`,
        values.list,
      );
      return { rows };
    }
    const { rows } = await pool.query<Row & { scanned_to: string | null }>(
      `with looked_at as materialized (
         select e.id, e.occurred_at, ${filters.join(' and ')} as hit from ${table} e where ${indexed} ${order} limit ${atMost(SCAN)}
       ),
       hits as (select id, occurred_at from looked_at e where hit ${order} limit ${seek.limit})
       select ${columns}, (select e.id from looked_at e ${order} offset ${SCAN - 1} limit 1) as scanned_to
       from (select 1) one left join hits on true
       left join ${table} e on e.project_id = $1 and e.id = hits.id and e.occurred_at = hits.occurred_at ${joins} ${order}`,
      values.list,
    );
    const scannedTo = rows[0]?.scanned_to ?? null;
    return { rows: rows.filter((row) => row.id !== null), scannedTo };
  });
}

/** A limit that the planner cannot see, so it chooses the index scan: on tables without statistics it would sort all rows. */
function atMost(rows: number): string {
  return `(select ${rows})`;
}

function statementParts(
  { projectId, span, indexed, filters }: LogQuery,
  { after, order }: Seek,
  values: Values,
): { indexed: string; filters: string[] } {
  const conditions = [`e.project_id = ${values.add(projectId)}`];
  const from = new Set<number>();
  const to = new Set<number>();
  if (span.from) from.add(clampTime(span.from.getTime()));
  if (span.to) to.add(clampTime(span.to.getTime()));
  if (after !== undefined) {
    conditions.push(`e.id ${order === 'asc' ? '>' : '<'} ${values.add(after)}::uuid`);
    (order === 'asc' ? from : to).add(timeOfId(after));
  }
  // Ids start with the time: a bound on both prunes partitions and positions the index scan.
  for (const ms of from) conditions.push(`e.id >= ${values.add(idBound(ms, '0'))}::uuid`, `e.occurred_at >= ${values.add(new Date(ms))}`);
  for (const ms of to) conditions.push(`e.id <= ${values.add(idBound(ms, 'f'))}::uuid`, `e.occurred_at <= ${values.add(new Date(ms))}`);
  conditions.push(...(indexed?.(values) ?? []));
  return { indexed: conditions.join(' and '), filters: filters?.(values) ?? [] };
}

/** The first (`0`) or last (`f`) id of a millisecond. */
export function idBound(ms: number, fill: '0' | 'f'): string {
  return uuidOfHex(ms.toString(16).padStart(12, '0') + fill.repeat(20));
}
