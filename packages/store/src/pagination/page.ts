import type { Knex } from 'knex';

export interface PageRequest {
  readonly perPage: number;
  /** `next`: the rows after the cursor in the order of `sort`. */
  readonly direction: 'next' | 'prev';
  /** At the edge of the last page read. */
  readonly cursor?: string | undefined;
  readonly sort: 'ASC' | 'DESC';
  /** One of the `SortKeys`, instead of the id. Cursors are then `<id>~<sort key>`. */
  readonly by?: string | undefined;
}

export interface PageResult<Row> {
  readonly content: readonly Row[];
  readonly hasNextPage: boolean;
  readonly hasPrevPage: boolean;
  readonly nextPageCursor: string | null;
  readonly prevPageCursor: string | null;
  /** The last row that a search has examined, unless it has examined all. */
  readonly searchedTo?: Date;
}

/** Rows beyond `after`, nearest first. */
export interface Seek {
  readonly order: 'asc' | 'desc';
  readonly after: string | undefined;
  readonly limit: number;
}

/**
 * For bounded lists: SQL of a text that sorts like the value. No index has the order, so each page
 * sorts the whole list. For a number from the data plane, `givenNumber`.
 */
export type SortKeys = Readonly<Record<string, string>>;

/** A text that sorts like the number, which is not negative. Null is zero. */
export function sortableNumber(sql: string): string {
  return `lpad(coalesce(${sql}, 0)::bigint::text, 20, '0')`;
}

/** For a page that is sorted by a key. */
export function edgeOf(cursor: string): readonly [key: string, id: string] {
  return [cursor.slice(ID_LENGTH + 1), cursor.slice(0, ID_LENGTH)];
}

const ID_LENGTH = 36;

/** By keyset, without counting or skipping rows. */
export async function readPage<Row extends { readonly id: string }>(
  request: PageRequest,
  read: (seek: Seek) => Promise<readonly (Row & { readonly sort_key?: string })[]>,
): Promise<PageResult<Row>> {
  const forward = request.direction === 'next';
  const order = (request.sort === 'ASC') === forward ? 'asc' : 'desc';
  const rows = await read({ order, after: request.cursor, limit: request.perPage + 1 });
  const more = rows.length > request.perPage;
  const shown = rows.slice(0, request.perPage);
  const cursorOf = ({ id, sort_key: key }: (typeof rows)[number]) =>
    key === undefined ? id : `${id}~${key}`;
  const [first, last] = [shown[0], shown.at(-1)];
  const content: Row[] = shown.map((row) => {
    const { sort_key: _, ...plain } = row;
    return plain as unknown as Row;
  });
  // The cursor's row is behind this page.
  const behind = request.cursor !== undefined;
  const farEdge = last ? cursorOf(last) : null;
  const nearEdge = first
    ? cursorOf(first)
    : request.cursor === undefined
      ? null
      : beside(request.cursor, order);
  const [far, near] = [more ? farEdge : null, behind ? nearEdge : null];
  return forward
    ? { content, hasNextPage: more, hasPrevPage: behind, nextPageCursor: far, prevPageCursor: near }
    : {
        content: content.reverse(),
        hasNextPage: behind,
        hasPrevPage: more,
        nextPageCursor: near,
        prevPageCursor: far,
      };
}

export function readRows<Row extends { readonly id: string }>(
  query: Knex.QueryBuilder,
  columns: readonly (string | Knex.Raw)[],
  request: PageRequest,
  id = 'id',
  key?: { readonly sql: string; readonly column: Knex.Raw },
): Promise<PageResult<Row>> {
  return readPage<Row>(request, ({ order, after, limit }) => {
    if (key) {
      if (after !== undefined)
        void query.whereRaw(
          `(${key.sql}, ${id}) ${order === 'asc' ? '>' : '<'} (?::text, ?::uuid)`,
          [...edgeOf(after)],
        );
      return query
        .orderByRaw(`sort_key ${order}, ${id} ${order}`)
        .limit(limit)
        .select([...columns, key.column]);
    }
    if (after !== undefined) void query.where(id, order === 'asc' ? '>' : '<', after);
    return query
      .orderBy(id, order)
      .limit(limit)
      .select([...columns]);
  });
}

/** From an empty page, the next one includes the row of its own cursor. */
function beside(cursor: string, order: 'asc' | 'desc'): string {
  const [id, key] = [cursor.slice(0, ID_LENGTH), cursor.slice(ID_LENGTH)];
  const number = BigInt(`0x${id.replaceAll('-', '')}`) + (order === 'asc' ? 1n : -1n);
  return uuidOfHex(BigInt.asUintN(128, number).toString(16).padStart(32, '0')) + key;
}

export function uuidOfHex(hex: string): string {
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-');
}
