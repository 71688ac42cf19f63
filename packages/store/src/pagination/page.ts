import type { Knex } from 'knex';

export interface PageRequest {
  readonly perPage: number;
  /** `next` requests the rows after the cursor in the order of `sort`, `prev` those before it. */
  readonly direction: 'next' | 'prev';
  /** The id at the edge of the last page read. Undefined for the first page. */
  readonly cursor?: string | undefined;
  readonly sort: 'ASC' | 'DESC';
}

export interface PageResult<Row> {
  readonly content: readonly Row[];
  readonly hasNextPage: boolean;
  readonly hasPrevPage: boolean;
  readonly nextPageCursor: string | null;
  readonly prevPageCursor: string | null;
  /** The time of the last row that a search has examined. Undefined if it has examined all. */
  readonly searchedTo?: Date;
}

/** A keyset read of the rows beyond `after`, nearest first. */
export interface Seek {
  readonly order: 'asc' | 'desc';
  readonly after: string | undefined;
  readonly limit: number;
}

/** Reads a page by keyset, without counting or skipping rows. */
export async function readPage<Row extends { readonly id: string }>(
  request: PageRequest,
  read: (seek: Seek) => Promise<readonly Row[]>,
): Promise<PageResult<Row>> {
  const forward = request.direction === 'next';
  const order = (request.sort === 'ASC') === forward ? 'asc' : 'desc';
  const rows = await read({ order, after: request.cursor, limit: request.perPage + 1 });
  const more = rows.length > request.perPage;
  const content = rows.slice(0, request.perPage);
  // The cursor's row is behind this page, so there is a page in that direction.
  const behind = request.cursor !== undefined;
  const farEdge = content.at(-1)?.id ?? null;
  const nearEdge =
    content[0]?.id ?? (request.cursor === undefined ? null : beside(request.cursor, order));
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

/** Reads a page of a query's rows, sorted by their id column. */
export function readRows<Row extends { readonly id: string }>(
  query: Knex.QueryBuilder,
  columns: readonly (string | Knex.Raw)[],
  request: PageRequest,
  id = 'id',
): Promise<PageResult<Row>> {
  return readPage<Row>(request, ({ order, after, limit }) => {
    if (after !== undefined) void query.where(id, order === 'asc' ? '>' : '<', after);
    return query
      .orderBy(id, order)
      .limit(limit)
      .select([...columns]);
  });
}

/**
 * Returns a cursor for leaving an empty page, such that the page it leads to includes the row of
 * the empty page's own cursor.
 */
function beside(id: string, order: 'asc' | 'desc'): string {
  const number = BigInt(`0x${id.replaceAll('-', '')}`) + (order === 'asc' ? 1n : -1n);
  return uuidOfHex(BigInt.asUintN(128, number).toString(16).padStart(32, '0'));
}

/** Adds hyphens to 32 hex digits without checking them. */
export function uuidOfHex(hex: string): string {
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-');
}
