import type { Source } from '@gateway/client';
import { useEffect } from 'preact/hooks';
import { Problem } from '../../components/feedback/problem.js';
import { Button } from '../../components/form/button.js';
import { Select, TextArea } from '../../components/form/field.js';
import { Panel } from '../../components/layout/panel.js';
import { projectHref } from '../../router/project-path.js';
import { may } from '../../session/access.js';
import { PreviewResult } from '../preview/preview-result.js';
import { usePreview } from '../preview/use-preview.js';
import { CodeEditor } from './code-editor.js';
import { Conflict } from './conflict.js';
import { useDraft } from './use-draft.js';
import { useSample } from './use-sample.js';

const EXAMPLE = `function transform(payload) {
  return {
    event_type: 'order.' + payload.status,
    data: payload,
  };
}
`;

/** Changes the function of a source. While it is typed it runs on a message, as an agent would run it. */
export function FunctionEditor({ source, onSaved }: { readonly source: Source; readonly onSaved: () => void }) {
  const isMember = may('member');
  const draft = useDraft(source, onSaved);
  const { text, isChanged, save, conflict } = draft;
  const sample = useSample(source);
  const preview = usePreview(isMember && sample.message ? { function: text, ...sample.message } : undefined);
  const refusal = preview.isCurrent ? preview.result?.refusal : undefined;
  const mistake = refusal?.line ? { line: refusal.line, sentence: refusal.reason } : undefined;
  useEffect(() => {
    if (!isChanged) return undefined;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [isChanged]);
  return (
    <div class="function">
      <Panel title="Function" actions={isChanged && <span class="muted">Not saved</span>}>
        <p class="muted">
          It gets each message and returns <code>event_type</code> and <code>data</code>, an array of such objects, or null to drop the
          message. Without a function, messages must have that form.
        </p>
        <CodeEditor
          label="Function"
          value={text}
          revision={draft.revision}
          onChange={draft.type}
          mistake={mistake}
          isReadOnly={!isMember}
          onRun={preview.run}
          onSave={save.run}
        />
        {conflict && <Conflict draft={draft} conflict={conflict} />}
        {save.error && <Problem error={save.error} />}
        {isMember && (
          <div class="form-actions">
            <Button kind="main" isDisabled={!isChanged} isRunning={save.isRunning} onPress={save.run}>
              Save
            </Button>
            {isChanged && <Button onPress={draft.undo}>Undo changes</Button>}
            {text.trim() === '' && <Button onPress={() => draft.replace(EXAMPLE)}>Begin with an example</Button>}
          </div>
        )}
        {isMember && (
          <p class="muted">
            <kbd>Ctrl</kbd>+<kbd>S</kbd> saves, <kbd>Ctrl</kbd>+<kbd>Enter</kbd> runs it again, <kbd>Ctrl</kbd>+<kbd>]</kbd> indents.
          </p>
        )}
      </Panel>
      {isMember && (
        <Panel title="Runs on">
          <Select label="Message" value={sample.chosen} options={sample.options} onChange={sample.choose} hint={sample.hint} />
          {sample.error && <Problem error={sample.error} />}
          <TextArea label="Its text" rows={8} isMono value={sample.text} onChange={sample.setText} />
          <PreviewResult preview={preview} />
          {sample.quarantineId && <a href={projectHref(`/quarantine/${sample.quarantineId}`)}>To the quarantined message, to replay it</a>}
        </Panel>
      )}
    </div>
  );
}
