import type { Knex } from 'knex';

export interface PageRequest {
  readonly perPage: number;
  /** `next`: after the cursor in the order of `sort`; `prev`: before it. */
  readonly direction: 'next' | 'prev';
  /** Id at the edge of the last page; none for the first page. */
  readonly cursor?: string | undefined;
  readonly sort: 'ASC' | 'DESC';
}

export interface PageResult<Row> {
  readonly content: readonly Row[];
  readonly hasNextPage: boolean;
  readonly hasPrevPage: boolean;
  readonly nextPageCursor: string | null;
  readonly prevPageCursor: string | null;
}

/** A keyset read: rows beyond `after`, nearest first. */
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
  // The cursor's row is on the other side.
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

/** Reads a page of a query's rows by `id`, the column of their id. */
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

/** Leads from an empty page back to the cursor's row. */
function beside(id: string, order: 'asc' | 'desc'): string {
  const number = BigInt(`0x${id.replaceAll('-', '')}`) + (order === 'asc' ? 1n : -1n);
  return uuidOfHex(BigInt.asUintN(128, number).toString(16).padStart(32, '0'));
}

/** Adds hyphens to 32 hex digits, unchecked. */
export function uuidOfHex(hex: string): string {
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-');
}
