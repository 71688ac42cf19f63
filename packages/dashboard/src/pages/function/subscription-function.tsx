import type { Subscription } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api, useResource } from '../../api/index.js';
import { Code, ResourcePage, TextArea } from '../../components/index.js';
import { objectOf } from '../../format/json.js';
import { param } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { may } from '../../session/session.js';
import { PreviewVerdict, usePreview } from '../preview/preview.js';
import { readSample, useSampleChoice } from '../subscriptions/samples.js';
import { SubscriptionTabs } from '../subscriptions/subscription-tabs.js';
import { FunctionEditor, type FunctionPlace, useFunctionDraft } from './function-editor.js';

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

export default function SubscriptionFunction({ id }: PageProps) {
  const subscription = useResource(`subscription ${id}`, (options) =>
    api().subscriptions.get(id, options),
  );
  return (
    <ResourcePage
      resource={subscription}
      title={({ name }) => name}
      name="Subscription"
      list="Subscriptions"
      tabs={<SubscriptionTabs id={id} shown="function" />}
    >
      {(data) => <Editor subscription={data} />}
    </ResourcePage>
  );
}

function Editor({ subscription }: { subscription: Subscription }) {
  const draft = useFunctionDraft(subscription, place);
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
      {sample.select}
      <TextArea
        label="Event data"
        rows={8}
        isMono
        value={sample.text}
        onChange={sample.type}
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

/** The data of an event that was chosen, or what the user has typed. */
function useEventSample() {
  const [text, setText] = useState(OWN);
  const { select, forget } = useSampleChoice('Event', param('event'), async (event) => {
    if (event !== '') setText((await readSample(event)).body);
  });
  const type = (typed: string) => {
    forget();
    setText(typed);
  };
  return { text, type, select };
}
