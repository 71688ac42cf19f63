import type { FilterMatch, FilterTest } from '@gateway/client';
import { api } from '../../api/client.js';
import { useDebounced, useResource, type Resource } from '../../api/read.js';
import { parseExactly } from '../../format/exact-json.js';
import { objectOf } from '../../format/json.js';
import { headersOf, type FilterSample } from './sample.js';
import { fieldsOf, type SubscriptionDraft } from './subscription-draft.js';

const TYPING_MS = 250;

/** Debounced. Tests nothing while draft or sample contains invalid JSON. */
export function useMatchTest(
  draft: SubscriptionDraft,
  sample: FilterSample,
): Resource<FilterMatch> {
  const test = useDebounced(JSON.stringify(testOf(draft, sample)), TYPING_MS);
  return useResource(test && `match ${test}`, (signal) =>
    api().subscriptions.testFilter(parseExactly(test) as FilterTest, { signal }),
  );
}

function testOf(draft: SubscriptionDraft, sample: FilterSample): FilterTest | undefined {
  const { event_types: types, filter } = fieldsOf(draft)?.filter_config ?? {};
  const body = objectOf(sample.body);
  if (!filter || !types || body.problem !== undefined) return undefined;
  const type = sample.type.trim();
  return {
    ...(types.length > 0 ? { event_types: types } : {}),
    filter,
    sample: {
      ...(type ? { event_type: type } : {}),
      headers: headersOf(sample.headers),
      body: body.value,
    },
  };
}
