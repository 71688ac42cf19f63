import type { Subscription } from '@gateway/client';
import { useEffect, useState } from 'preact/hooks';
import { useAction } from '../../api/change.js';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Code } from '../../components/data.js';
import { Loaded, Problem } from '../../components/feedback.js';
import { Select, TextArea } from '../../components/field.js';
import { Page } from '../../components/layout.js';
import { objectOf } from '../../format/json.js';
import { projectHref, query } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { may } from '../../session/session.js';
import { PreviewVerdict, usePreview } from '../preview/preview.js';
import { readChoices, readSample } from '../subscriptions/samples.js';
import { SubscriptionTabs } from '../subscriptions/subscription-tabs.js';
import { useFunctionDraft, type FunctionPlace } from './function-draft.js';
import { FunctionEditor } from './function-editor.js';

const EXAMPLE = `function transform(payload) {
  return {
    text: 'Order ' + payload.id,
  };
}
`;

const OUTCOMES = {
  accepted: ['ok', 'would be sent'],
  dropped: ['warn', 'nothing would be sent'],
  failed: ['bad', 'the attempt would fail'],
} as const;

const place: FunctionPlace<Subscription> = {
  textOf: (subscription) => subscription.function,
  read: (uid) => api().subscriptions.get(uid),
  write: (uid, text, options) => api().subscriptions.update(uid, { function: text }, options),
  saved: 'Function saved. Deliveries that are not sent yet use it.',
};

export default function SubscriptionFunction({ params: { id = '' } }: PageProps) {
  const subscription = useResource(`subscription ${id}`, (signal) =>
    api().subscriptions.get(id, { signal }),
  );
  return (
    <Page
      title={subscription.data?.name ?? 'Subscription'}
      above={<a href={projectHref('/subscriptions')}>Subscriptions</a>}
    >
      <SubscriptionTabs id={id} shown="function" />
      <Loaded resource={subscription} lines={12}>
        {(data) => <Editor subscription={data} onSaved={subscription.refresh} />}
      </Loaded>
    </Page>
  );
}

function Editor({ subscription, onSaved }: { subscription: Subscription; onSaved: () => void }) {
  const draft = useFunctionDraft(subscription, place, onSaved);
  const sample = useEventSample();
  const data = objectOf(sample.text);
  const isReady = may('member') && draft.text.trim() !== '';
  const test =
    isReady && data.problem === undefined
      ? { function: draft.text, payload: data.value }
      : undefined;
  const preview = usePreview(test, (it, options) => api().subscriptions.testFunction(it, options));
  const { result } = preview;
  return (
    <FunctionEditor
      draft={draft}
      preview={preview}
      example={EXAMPLE}
      about="The function receives the data of each matching event and returns the request body, or null to send nothing. Without a function, the data is sent unchanged."
    >
      <Select
        label="Event"
        value={sample.chosen}
        options={sample.options}
        onChange={sample.choose}
      />
      {sample.error && <Problem error={sample.error} />}
      <TextArea
        label="Event data"
        rows={8}
        isMono
        value={sample.text}
        onChange={sample.setText}
        error={data.problem}
      />
      {test && (
        <PreviewVerdict preview={preview} outcome={result && OUTCOMES[result.outcome]}>
          {result?.outcome === 'accepted' && (
            <Code label="Request body" text={JSON.stringify(result.payload)} />
          )}
        </PreviewVerdict>
      )}
    </FunctionEditor>
  );
}

const OWN = '{\n  "id": "A-1001"\n}';

interface EventSample {
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly options: readonly (readonly [value: string, label: string])[];
  readonly chosen: string;
  readonly choose: (uid: string) => void;
  readonly error: Error | undefined;
}

/** The data of the event set by a URL parameter, or of the newest event. The text can be edited. */
function useEventSample(): EventSample {
  const [{ event, text }, setSample] = useState({
    event: query.value.get('event') ?? '',
    text: OWN,
  });
  const recent = useResource('samples', readChoices);
  const take = useAction(async (uid: string) => {
    const { body } = await readSample({ uid });
    setSample({ event: uid, text: body });
  });
  useEffect(() => {
    const first = event || recent.data?.[0]?.uid;
    if (first && recent.data) take.run(first);
  }, [recent.data === undefined]);
  const options = (recent.data ?? []).map(({ uid, label }) => [uid, label] as const);
  const isOther = event !== '' && !options.some(([uid]) => uid === event);
  return {
    text,
    setText: (typed) => setSample({ event: '', text: typed }),
    options: [['', 'Custom'], ...(isOther ? [[event, 'Linked event'] as const] : []), ...options],
    chosen: event,
    choose: (uid) => (uid === '' ? setSample({ event: '', text }) : take.run(uid)),
    error: take.error ?? recent.error,
  };
}
