import { Type, type Static, type TObject, type TSchema } from '@sinclair/typebox';
import { parseSearch, type EventSearch } from '@gateway/core/events';
import type { PageRequest, PageResult } from '@gateway/store/pagination';
import { described, Id, invalid, nullable, object, oneOf, Timestamp } from './schema.js';

const PER_PAGE = 20;
const PER_PAGE_MAX = 200;

/** For every list. Routes add filters. */
export const pageQuery = {
  perPage: Type.Optional(Type.Integer({ minimum: 1, maximum: PER_PAGE_MAX, default: PER_PAGE })),
  direction: Type.Optional(oneOf(['next', 'prev'])),
  next_page_cursor: Type.Optional(Id),
  prev_page_cursor: Type.Optional(Id),
  page: Type.Optional(Type.Integer({ description: 'Ignored. Lists use cursors.' })),
  sort: Type.Optional(
    oneOf(['ASC', 'DESC'], {
      description: 'Sort order by time, or by `sortBy`. Default: `DESC`, newest first.',
    }),
  ),
} as const;

const SortedCursor = Type.Optional(
  Type.String({
    pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(~[^\\u0000]{0,500})?$',
    'x-sentence': 'must be a cursor that a page of this list has given',
  }),
);

/** For a bounded list that can be sorted by `keys`. They replace those of `pageQuery`. */
export function sortQuery<const Key extends string>(keys: readonly Key[], description: string) {
  return {
    sortBy: Type.Optional(
      oneOf(keys, { description: `${description} By creation when it is left out.` }),
    ),
    next_page_cursor: SortedCursor,
    prev_page_cursor: SortedCursor,
  } as const;
}

/**
 * By default 20 rows, forward, newest first. The other direction's cursor is ignored. Throws
 * `invalid_request` for a cursor of another order.
 */
export function pageRequest(
  query: Static<TObject<typeof pageQuery>> & { readonly sortBy?: string },
): PageRequest {
  const { perPage = PER_PAGE, direction = 'next', sort = 'DESC', sortBy: by } = query;
  const name = direction === 'next' ? 'next_page_cursor' : 'prev_page_cursor';
  const cursor = query[name];
  if (cursor !== undefined && cursor.includes('~') !== (by !== undefined))
    throw invalid(name, 'belongs to a page in another order');
  return { perPage, direction, sort, cursor, by };
}

/** A cursor is null if there is no page in its direction. */
export function pageView<Row>(
  page: PageResult<Row>,
  { perPage }: PageRequest,
  view: (row: Row) => unknown,
): unknown {
  return {
    content: page.content.map(view),
    pagination: {
      per_page: perPage,
      has_next_page: page.hasNextPage,
      has_prev_page: page.hasPrevPage,
      next_page_cursor: page.nextPageCursor,
      prev_page_cursor: page.prevPageCursor,
      ...(page.searchedTo && { searched_to: page.searchedTo }),
    },
  };
}

export function pageOf(row: TSchema, isSearched = false) {
  return object({
    content: Type.Array(row),
    pagination: object({
      per_page: Type.Integer(),
      has_next_page: Type.Boolean(),
      has_prev_page: Type.Boolean(),
      next_page_cursor: nullable(Type.String()),
      prev_page_cursor: nullable(Type.String()),
      ...(isSearched && {
        searched_to: Type.Optional(
          described(
            Timestamp,
            'How far the search got within its time. The next page continues from there.',
          ),
        ),
      }),
    }),
  });
}

/** For lists with a bounded number of rows per project. */
export const searchQuery = {
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      pattern: '^[^\\u0000]*$',
      description: 'Part of the name, ignoring case.',
    }),
  ),
} as const;

export const idQuery = {
  query: Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f]{8}-?(?=.{0,27}$)[0-9A-Fa-f-]*$',
      'x-sentence': 'must be an id, or the start of one: at least eight hex digits',
      description: 'An id, or at least its first eight digits.',
    }),
  ),
} as const;

/** Searches the contents of events. */
export const textQuery = {
  search: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1_000,
      pattern: '^[^\\u0000]*$',
      description:
        'Conditions such as `data.order.id = 42 and headers.x-shop = acme`, or words to find in the data, type, id, key or owner. `data.tags = vip` also finds lists that contain the value.',
    }),
  ),
} as const;

/** Throws `invalid_request`. */
export function searchOf({ search }: { search?: string }): EventSearch | undefined {
  if (search === undefined || search.trim() === '') return undefined;
  try {
    return parseSearch(search);
  } catch (error) {
    throw invalid('search', (error as Error).message);
  }
}

export const Time = Type.String({
  pattern:
    '^\\d{4}-\\d{2}-\\d{2}([T ]\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:?\\d{2})?)?$',
  'x-sentence': 'must be a date like 2026-11-21 or a time like 2026-11-21T09:00:00Z',
});

export const timeQuery = { startDate: Type.Optional(Time), endDate: Type.Optional(Time) } as const;

/**
 * Times without a zone are UTC; an end date without a time includes the whole day. Throws
 * `invalid_request` for a date that does not exist.
 */
export function timeRange({ startDate, endDate }: { startDate?: string; endDate?: string }): {
  from?: Date;
  to?: Date;
} {
  return {
    ...(startDate === undefined ? {} : { from: dateOf('startDate', startDate, 'T00:00:00.000Z') }),
    ...(endDate === undefined ? {} : { to: dateOf('endDate', endDate, 'T23:59:59.999Z') }),
  };
}

function dateOf(field: string, text: string, timeOfDay: string): Date {
  const zoned = /(Z|[+-]\d{2}:?\d{2})$/.test(text.slice(10)) ? text : `${text}Z`;
  const date = new Date(text.length === 10 ? text + timeOfDay : zoned.replace(' ', 'T'));
  const day = new Date(text.slice(0, 10));
  // JavaScript reads 30 February as 2 March, so the day is compared.
  if (Number.isNaN(date.getTime()) || !day.toISOString().startsWith(text.slice(0, 10)))
    throw invalid(field, 'is not a calendar date');
  return date;
}
