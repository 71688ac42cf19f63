import type { FilterMatch, FilterTest } from '@gateway/client';
import { api, type Draft, type Resource, useDebounced, useResource } from '../../api/index.js';
import { Badge, Panel, TextArea, TextField } from '../../components/index.js';
import { parseExactly } from '../../format/exact-json.js';
import { objectOf } from '../../format/json.js';
import { capital } from '../../format/text.js';
import { param } from '../../router/location.js';
import { readSample, useSampleChoice, type FilterSample } from './samples.js';
import { fieldsOf, type SubscriptionDraft } from './subscription-draft.js';

export function MatchTest({
  draft: { values, replace },
  match,
}: {
  draft: Draft<FilterSample>;
  match: Resource<FilterMatch>;
}) {
  const { select, forget } = useSampleChoice('Sample', param('event'), async (event) => {
    if (event !== '') replace(await readSample(event));
  });
  const edit = (field: keyof FilterSample) => (text: string) => {
    forget();
    replace({ ...values, [field]: text });
  };
  return (
    <Panel title="Filter test">
      <Verdict match={match} />
      {select}
      <TextField label="Event type" isMono value={values.type} onChange={edit('type')} />
      <TextArea
        label="Data"
        isMono
        rows={10}
        value={values.body}
        onChange={edit('body')}
        error={objectOf(values.body).problem}
      />
      <TextArea
        label="Headers"
        isMono
        rows={2}
        hint="One per line, such as x-region: eu"
        value={values.headers}
        onChange={edit('headers')}
      />
    </Panel>
  );
}

function Verdict({ match: { data, error, isLoading } }: { match: Resource<FilterMatch> }) {
  return (
    <div class="verdict" role="status">
      {error && <p class="muted">Not tested. Fix the errors in the form first.</p>}
      {isLoading && !data && <p class="muted">Testing…</p>}
      {data?.matches && (
        <p>
          <Badge status="success" label="matches" /> The sample would be delivered.
        </p>
      )}
      {data && !data.matches && (
        <>
          <p>
            <Badge status="failure" label="no match" /> The sample would not be delivered:
          </p>
          <ul>
            {data.mismatches.map((it) => (
              <li key={it.part}>{capital(it.sentence)}</li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

export const emptySample: FilterSample = {
  type: 'order.created',
  headers: '',
  body: '{\n  "total": 120\n}',
};

const TYPING_MS = 250;

/** Debounced. Tests nothing while draft or sample contains invalid JSON. */
export function useMatchTest(
  draft: SubscriptionDraft,
  sample: FilterSample,
): Resource<FilterMatch> {
  const test = useDebounced(JSON.stringify(testOf(draft, sample)), TYPING_MS);
  return useResource(test && `match ${test}`, (options) =>
    api().subscriptions.testFilter(parseExactly(test) as FilterTest, options),
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

/** Lines such as `x-region: eu`. Lines without a colon are ignored. */
function headersOf(text: string): Record<string, string> {
  const lines = text.split('\n').flatMap((line) => {
    const [, name, value] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, value ?? ''] as const];
  });
  return Object.fromEntries(lines);
}
