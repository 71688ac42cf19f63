import type { Source } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { Loaded } from '../../components/feedback/loading.js';
import { Problem } from '../../components/feedback/problem.js';
import { Select, TextArea } from '../../components/form/field.js';
import { Page } from '../../components/layout/page.js';
import type { PageProps } from '../../router/match.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { may } from '../../session/access.js';
import { PreviewResult } from '../preview/preview-result.js';
import { usePreview } from '../preview/use-preview.js';
import { SourceTabs } from '../sources/source-tabs.js';
import { FunctionEditor } from './function-editor.js';
import { useDraft, type Place } from './use-draft.js';
import { useSample } from './use-sample.js';

const EXAMPLE = `function transform(payload) {
  return {
    event_type: 'order.' + payload.status,
    data: payload,
  };
}
`;

const place: Place<Source> = {
  textOf: (source) => source.body_function,
  read: (uid) => api().sources.get(uid),
  write: (uid, text, options) => api().sources.update(uid, { body_function: text }, {}, options),
  saved: 'The function is saved. Agents use it for the next message.',
};

export default function SourceFunction({ params: { id = '' } }: PageProps) {
  const source = useResource(`${projectId.value} source ${id}`, (signal) =>
    api().sources.get(id, { signal }),
  );
  return (
    <Page
      title={source.data?.name ?? 'Source'}
      above={<a href={projectHref('/sources')}>Sources</a>}
    >
      <SourceTabs id={id} shown="function" />
      <Loaded resource={source} lines={12}>
        {(data) => <Editor source={data} onSaved={source.refresh} />}
      </Loaded>
    </Page>
  );
}

function Editor({ source, onSaved }: { readonly source: Source; readonly onSaved: () => void }) {
  const draft = useDraft(source, place, onSaved);
  const sample = useSample(source);
  const test =
    may('member') && sample.message ? { function: draft.text, ...sample.message } : undefined;
  const preview = usePreview(test, (it, options) => api().sources.testFunction(it, options));
  return (
    <FunctionEditor
      draft={draft}
      preview={preview}
      example={EXAMPLE}
      about={
        <>
          It gets each message and returns <code>event_type</code> and <code>data</code>, an array
          of such objects, or null to drop the message. Without a function, messages must have that
          form.
        </>
      }
    >
      <Select
        label="Message"
        value={sample.chosen}
        options={sample.options}
        onChange={sample.choose}
        hint={sample.hint}
      />
      {sample.error && <Problem error={sample.error} />}
      <TextArea label="Its text" rows={8} isMono value={sample.text} onChange={sample.setText} />
      <PreviewResult preview={preview} />
      {sample.quarantineId && (
        <a href={projectHref(`/quarantine/${sample.quarantineId}`)}>
          To the quarantined message, to replay it
        </a>
      )}
    </FunctionEditor>
  );
}
