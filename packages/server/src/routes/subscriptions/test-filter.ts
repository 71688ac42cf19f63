import { GatewayError } from '@gateway/core/errors';
import { FilterBudgetError } from '@gateway/core/events';
import { filterMismatch, lowerNames, typeMismatch, withSentence } from '@gateway/core/routing';
import {
  assertValid,
  boolean,
  described,
  namedObject,
  object,
  projectRoute,
  string,
  Type,
  Word,
  type Route,
  type Static,
} from '../../api/vocabulary.js';
import { Mismatch } from '../explain.js';
import { EventTypes, Filter, filterProblems, patternProblems } from './filter.js';

const Sample = Type.Record(string(), Type.Unknown());
const FilterTest = namedObject('FilterTest', {
  event_types: EventTypes,
  filter: Filter,
  sample: object({
    event_type: Type.Optional(
      described(Word, 'Event type of the sample. If omitted, event types are not tested.'),
    ),
    headers: Type.Optional(Type.Record(string(), string())),
    body: Type.Optional(
      Type.Unsafe<Readonly<Record<string, unknown>>>({
        ...Sample,
        description: 'The data of an event.',
      }),
    ),
    message: Type.Optional(
      described(Sample, 'The message of an event. If omitted, it is not tested.'),
    ),
  }),
});
const FilterMatch = namedObject('FilterMatch', {
  matches: boolean('Whether all that is tested matches.'),
  headers: boolean(),
  body: boolean(),
  mismatches: Type.Array(Mismatch, {
    description: 'Parts that do not match, with the reason of each.',
  }),
});

export const testFilterRoutes: readonly Route[] = [
  projectRoute(
    'POST /subscriptions/test_filter',
    'Tests whether a filter matches a sample. The sample is not stored.',
    {
      role: 'viewer',
      isAudited: false,
      body: FilterTest,
      data: FilterMatch,
      name: 'testFilter',
      portal: 'any',
    },
    ({ body }) => {
      assertValid([
        ...patternProblems(body.event_types, 'event_types'),
        ...filterProblems(body.filter, 'filter'),
      ]);
      const mismatches = mismatchesOf(body);
      const isMatched = (part: string) => mismatches.every((it) => it.part !== part);
      const matches = mismatches.length === 0;
      const parts = { headers: isMatched('headers'), body: isMatched('body') };
      const message = `the filter ${matches ? 'matches' : 'does not match'}`;
      return { message, data: { matches, ...parts, mismatches } };
    },
  ),
];

type Test = Static<typeof FilterTest>;
/** Header names are compared in lower case, as in events. */
function mismatchesOf({
  event_types: wanted = ['*'],
  filter,
  sample,
}: Test): Static<typeof Mismatch>[] {
  const { event_type: found } = sample;
  return [
    (found !== undefined && typeMismatch(wanted, found)) || [],
    partMismatch('headers', lowerNames(filter.headers ?? {}), lowerNames(sample.headers ?? {})),
    partMismatch('body', filter.body ?? {}, sample.body ?? {}),
    sample.message ? partMismatch('message', filter.message ?? {}, sample.message) : [],
  ].flat();
}

function partMismatch(
  part: 'headers' | 'body' | 'message',
  filter: Readonly<Record<string, unknown>>,
  value: unknown,
): Static<typeof Mismatch>[] {
  try {
    const mismatch = filterMismatch(filter, value);
    return mismatch ? [withSentence({ part, ...mismatch })] : [];
  } catch (error) {
    if (!(error instanceof FilterBudgetError)) throw error;
    throw new GatewayError('invalid_request', {
      problems: [{ field: `filter.${part}`, sentence: error.message }],
    });
  }
}
