import type { GatewayClient } from '@gateway/client';
import { query } from '../../router/location.js';
import { searchOf, type Search } from '../log/search.js';
import { shownRange } from '../log/time-range.js';

type ListQuery = NonNullable<Parameters<GatewayClient['events']['list']>[0]>;

export const STATUSES = [
  ['', 'Any status'],
  ['processed', 'Processed'],
  ['failed', 'Failed'],
  ['pending', 'Pending'],
] as const;

/** The list that the query of the page asks for. */
export function eventFilter(): ListQuery & Search {
  const status = query.value.get('status') as ListQuery['status'] | null;
  const sourceId = query.value.get('source');
  return {
    ...shownRange(),
    ...searchOf(query.value.get('search') ?? ''),
    ...(status ? { status } : {}),
    ...(sourceId ? { sourceId } : {}),
  };
}
