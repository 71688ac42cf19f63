import { api, given, type ListQuery, useResource } from '../../api/index.js';
import {
  byName,
  type Choices,
  FilterSelect,
  searchOf,
  shownRange,
} from '../../components/index.js';
import { param } from '../../router/location.js';

type EventQuery = ListQuery<'events'>;

export const STATUSES = [
  ['', 'Any status'],
  ['processed', 'processed'],
  ['failed', 'failed'],
  ['pending', 'pending'],
  ['unrouted', 'no recipient'],
] as const;

const UNROUTED = [
  'no_subscription',
  'no_endpoints',
  'unknown_endpoint',
  'unknown_owner',
  'filter_budget',
] as const;

export function eventFilter(): EventQuery {
  const isUnrouted = param('status') === 'unrouted';
  return {
    ...shownRange(),
    ...eventSearch(),
    ...given({
      status: isUnrouted ? '' : (param('status') as NonNullable<EventQuery['status']>),
      outcome: isUnrouted ? UNROUTED : undefined,
      sourceId: param('source'),
    }),
  };
}

/** The start of an id is looked up by its index; the server interprets any other text. */
function eventSearch(): EventQuery {
  const search = param('search').trim();
  const { query } = searchOf(search);
  return given(query === undefined ? { search } : { query });
}

/** At most 100 sources, sorted by name. */
export function useSourceNames(): Choices {
  const { data = [] } = useResource('sources to filter by', async (options) =>
    byName((await api().sources.list({ perPage: 100 }, options).page()).content),
  );
  return data;
}

export function SourceFilter() {
  const names = useSourceNames();
  if (names.length === 0) return null;
  return <FilterSelect name="source" label="Source" options={[['', 'Any source'], ...names]} />;
}
