// A search scans instead of using an index, which each event would pay for. A trigram index took
// half of the size of the data and three minutes of a core for a million events, needs an
// extension, and finds no short numbers.
import type { Pool } from 'pg';
import { clampTime, EXPONENT, spellingsOf, timeOfId, type EventSearch } from '@gateway/core/events';
import { inSlices } from '@gateway/core/process';
import { boundsOf, hitsOf, Values, type LogQuery } from './log-page.js';
import { readPage, type PageRequest, type PageResult, type Seek } from './page.js';

/** For one page. */
export interface SearchBudget {
  /** Then it stops, with a cursor to continue. */
  readonly ms: number;
  /** Per statement. */
  readonly rows: number;
  readonly bytes: number;
}

const BUDGET: SearchBudget = { ms: 1_000, rows: 4_096, bytes: 4 << 20 };
const FIRST_ROWS = 256;

export interface SearchOptions {
  readonly search: EventSearch;
  readonly budget?: SearchBudget | undefined;
  /** False if the caller no longer waits for the page. */
  readonly isWanted?: (() => boolean) | undefined;
}

/**
 * By id. Reads rows in short statements, until the page is full or the budget is spent. No lock.
 */
export async function searchLog<Row extends { readonly id: string }>(
  pool: Pool,
  query: LogQuery,
  page: PageRequest,
  { search, budget = BUDGET, isWanted = () => true }: SearchOptions,
): Promise<PageResult<Row>> {
  let stop: string | undefined;
  const result = await readPage<Row>(page, async ({ order, after, limit }) => {
    const found: Row[] = [];
    const until = performance.now() + budget.ms;
    for (let [at, rows] = [after, Math.min(FIRST_ROWS, budget.rows)]; ;) {
      const step = await examine<Row>(
        pool,
        query,
        { order, after: at, limit: rows },
        search,
        budget,
      );
      found.push(...step.found);
      if (found.length >= limit || step.edge === undefined) return found;
      at = step.edge;
      if (performance.now() >= until || !isWanted()) {
        stop = at;
        return found;
      }
      rows = Math.min(rows * 4, budget.rows);
    }
  });
  return stop === undefined ? result : stoppedAt(result, page, stop);
}

/** The search stopped at the row `id`; the cursor continues there. */
export function stoppedAt<Row>(
  result: PageResult<Row>,
  { direction }: Pick<PageRequest, 'direction'>,
  id: string,
): PageResult<Row> {
  const searchedTo = new Date(clampTime(timeOfId(id)));
  return direction === 'next'
    ? { ...result, hasNextPage: true, nextPageCursor: id, searchedTo }
    : { ...result, hasPrevPage: true, prevPageCursor: id, searchedTo };
}

/** `edge` is the last row's id, undefined at the end of the log. */
async function examine<Row extends { readonly id: string }>(
  pool: Pool,
  query: LogQuery,
  seek: Seek,
  { words, texts, matches }: EventSearch,
  { bytes }: SearchBudget,
): Promise<{ found: Row[]; edge: string | undefined }> {
  const values = new Values();
  const { table, columns } = query;
  const { order, limit } = seek;
  const bounds = boundsOf(query, seek, values);
  const has = (text: string, word: string) => `strpos(${text}, ${word}) > 0`;
  const conditions = [
    ...texts.map((text) => {
      const orNumber = /^\d+$/.test(text) ? ` or e.data ~ ${values.add(EXPONENT)}` : '';
      return `(${has('e.data', values.add(text))} or ${has('e.data', `'\\u'`)}${orNumber})`;
    }),
    ...words.map((word) => {
      const it = `${values.add(word)}::text`;
      const escaped = `${has('e.data', `'\\'`)} and e.data ~ ${values.add(spellingsOf(word))}`;
      return `(${has('e.data', it)} or ${has(NAMES, `lower(${it} collate "C")`)} or ${escaped})`;
    }),
  ];
  const rowOf = (hit: string) =>
    `e.project_id = $1 and e.id = ${hit}.id and e.occurred_at = ${hit}.occurred_at`;
  // Lateral joins with a limit are nested loops over the primary key: others would read whole
  // partitions. The sum bounds the bytes, because rows may be large.
  const { rows } = await pool.query<Row & StepRow>(
    `with hits as materialized (select * from (${hitsOf(query, seek, bounds, values)}) e order by e.id ${order} limit ${limit}),
     part as materialized (select id, occurred_at from (
       select hits.*, sum(it.bytes) over (order by hits.id ${order}) - it.bytes as before
       from hits cross join lateral (select octet_length(e.data) as bytes from ${table} e where ${rowOf('hits')} limit 1) it) sized where before < ${bytes})
     select examined.*, found.* from (
       select (select count(*) from hits)::int as hits, count(*)::int as examined, (array_agg(id order by id ${order}))[count(*)] as edge from part) examined
     left join lateral (
       select ${columns}${matches ? ', e.data as searched' : ''} from part cross join lateral (
         select * from ${table} e where ${[rowOf('part'), ...conditions].join(' and ')} limit 1) e) found on true
     order by found.id ${order}`,
    values.list,
  );
  const { hits, examined, edge } = rows[0]!;
  const isEnd = edge === null || (hits < limit && examined === hits);
  const found: Row[] = [];
  await inSlices(
    (function* () {
      // Without a match, there is one row, without an id.
      for (const row of rows.filter(({ id }) => id !== null)) {
        if (!matches || matches(row.searched, row.headers)) found.push(row);
        for (const name of OWN_COLUMNS) delete (row as Partial<StepRow>)[name];
        yield;
      }
    })(),
  );
  return { found, edge: isEnd ? undefined : edge };
}

/**
 * Besides the data, words are found in these, in any case of ASCII letters whatever the database's
 * rules.
 */
const NAMES = `lower(concat_ws(' ', e.id, e.event_type, e.idempotency_key, e.owner_id, e.endpoint_id, e.coordinates) collate "C")`;

const OWN_COLUMNS = ['hits', 'examined', 'edge', 'searched'] as const;

interface StepRow {
  readonly hits: number;
  readonly examined: number;
  readonly edge: string | null;
  readonly headers: string;
  readonly searched: string;
}
