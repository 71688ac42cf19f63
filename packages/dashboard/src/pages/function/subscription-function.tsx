import type { Subscription } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { Code } from '../../components/data/code.js';
import { Loaded } from '../../components/feedback/loading.js';
import { Problem } from '../../components/feedback/problem.js';
import { Select, TextArea } from '../../components/form/field.js';
import { Page } from '../../components/layout/page.js';
import { objectOf } from '../../format/json.js';
import type { PageProps } from '../../router/match.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { may } from '../../session/access.js';
import { PreviewVerdict } from '../preview/preview-verdict.js';
import { usePreview } from '../preview/use-preview.js';
import { SubscriptionTabs } from '../subscriptions/subscription-tabs.js';
import { FunctionEditor } from './function-editor.js';
import { useDraft, type Place } from './use-draft.js';
import { useEventSample } from './use-event-sample.js';

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

const place: Place<Subscription> = {
  textOf: (subscription) => subscription.function,
  read: (uid) => api().subscriptions.get(uid),
  write: (uid, text, options) => api().subscriptions.update(uid, { function: text }, options),
  saved: 'The function is saved. Deliveries that were not sent yet use it.',
};

export default function SubscriptionFunction({ params: { id = '' } }: PageProps) {
  const subscription = useResource(`${projectId.value} subscription ${id}`, (signal) =>
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

function Editor({
  subscription,
  onSaved,
}: {
  readonly subscription: Subscription;
  readonly onSaved: () => void;
}) {
  const draft = useDraft(subscription, place, onSaved);
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
      about="It gets the data of each event that this subscription matches, and returns what its endpoint gets, or null to send nothing. Without a function, the endpoint gets the data as it is."
    >
      <Select
        label="Event"
        value={sample.chosen}
        options={sample.options}
        onChange={sample.choose}
      />
      {sample.error && <Problem error={sample.error} />}
      <TextArea
        label="Its data"
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
