import type { GatewayClient } from '@gateway/client';
import { given } from '../../api/given.js';
import { param } from '../../router/location.js';
import { searchOf, type Search } from '../log/search.js';
import { shownRange } from '../log/time-range.js';

type ListQuery = NonNullable<Parameters<GatewayClient['events']['list']>[0]>;

export const STATUSES = [
  ['', 'Any status'],
  ['processed', 'Processed'],
  ['failed', 'Failed'],
  ['pending', 'Pending'],
] as const;

/** The API filters of the page's query. */
export function eventFilter(): ListQuery & Search {
  return {
    ...shownRange(),
    ...searchOf(param('search')),
    ...given({
      status: param('status') as NonNullable<ListQuery['status']>,
      sourceId: param('source'),
    }),
  };
}
