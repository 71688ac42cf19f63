import type { FilterMatch } from '@gateway/client';
import { useEffect } from 'preact/hooks';
import { useAction, type Draft } from '../../api/change.js';
import { useResource, type Resource } from '../../api/read.js';
import { Badge } from '../../components/data.js';
import { Problem } from '../../components/feedback.js';
import { Select, TextArea, TextField } from '../../components/field.js';
import { Panel } from '../../components/layout.js';
import { objectOf } from '../../format/json.js';
import { capital } from '../../format/text.js';
import { projectId } from '../../router/location.js';
import type { FilterSample } from './sample.js';
import { readChoices, readSample } from './samples.js';

export type Samples = FilterSample & { readonly event: string };

/** The user types a sample or chooses a recent event or, in the portal, an example. */
export function MatchTest({
  draft,
  match,
}: {
  readonly draft: Draft<Samples>;
  readonly match: Resource<FilterMatch>;
}) {
  const { values, set, replace } = draft;
  const recent = useResource(`${projectId.value} samples`, readChoices);
  const take = useAction(async (event: string) => {
    replace({ ...(event === '' ? values : await readSample({ uid: event })), event });
  });
  // Start with the event set by a URL parameter, otherwise the newest one.
  useEffect(() => {
    const first = values.event || recent.data?.[0]?.uid;
    if (first && recent.data) take.run(first);
  }, [recent.data === undefined]);
  const options = (recent.data ?? []).map(({ uid, label }) => [uid, label] as const);
  const edit = (field: 'type' | 'headers' | 'body') => (text: string) =>
    replace({ ...values, [field]: text, event: '' });
  return (
    <Panel title="Filter test">
      <Verdict match={match} />
      <Select
        label="Sample"
        value={values.event}
        options={[['', 'Custom'], ...options]}
        other="Linked event"
        onChange={(event) => (event === '' ? set('event')('') : take.run(event))}
      />
      {take.error && <Problem error={take.error} />}
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

function Verdict({ match: { data, error, isLoading } }: { readonly match: Resource<FilterMatch> }) {
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
