import { Type, type Static, type TObject } from '@sinclair/typebox';
import type { Page, PageRequest } from '@gateway/store/pagination';
import { Id, oneOf } from './schema.js';

const PER_PAGE = 20;
const PER_PAGE_MAX = 200;

/** The query of every list; a route adds its filters. */
export const pageQuery = {
  perPage: Type.Optional(Type.Integer({ minimum: 1, maximum: PER_PAGE_MAX, default: PER_PAGE })),
  direction: Type.Optional(oneOf(['next', 'prev'])),
  next_page_cursor: Type.Optional(Id),
  prev_page_cursor: Type.Optional(Id),
  sort: Type.Optional(oneOf(['ASC', 'DESC'], { description: 'By time; DESC, the newest first, when it is left out.' })),
} as const;

export function pageRequest(query: Static<TObject<typeof pageQuery>>): PageRequest {
  const { perPage = PER_PAGE, direction = 'next', sort = 'DESC' } = query;
  return { perPage, direction, sort, cursor: direction === 'next' ? query.next_page_cursor : query.prev_page_cursor };
}

/** A page as the API shows it. */
export function pageView<Row>(page: Page<Row>, { perPage }: PageRequest, view: (row: Row) => unknown): unknown {
  return {
    content: page.content.map(view),
    pagination: {
      per_page: perPage,
      has_next_page: page.hasNextPage,
      has_prev_page: page.hasPrevPage,
      next_page_cursor: page.nextPageCursor,
      prev_page_cursor: page.prevPageCursor,
    },
  };
}
