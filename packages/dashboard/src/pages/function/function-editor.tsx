import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { Button, Code, Panel, Problem } from '../../components/index.js';
import { may } from '../../session/session.js';
import type { PreviewState } from '../preview/preview.js';
import { CodeEditor } from './code-editor.js';
import type { FunctionDraft } from './function-draft.js';

/**
 * While the user types, runs the function on a sample as an agent would.
 *
 * @param props.about explains the input and output of the function
 * @param props.children the sample and the result, for members only
 */
export function FunctionEditor({
  draft,
  preview,
  about,
  example,
  children,
}: {
  draft: FunctionDraft;
  preview: PreviewState<{ readonly refusal: object | null }>;
  about: ComponentChildren;
  example: string;
  children: ComponentChildren;
}) {
  const isMember = may('member');
  const { text, isChanged, save, conflict } = draft;
  const refusal = (preview.isCurrent ? preview.result?.refusal : undefined) as
    { line: number | null; reason: string } | null | undefined;
  const mistake = refusal?.line ? { line: refusal.line, sentence: refusal.reason } : undefined;
  useEffect(() => {
    if (!isChanged) return undefined;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [isChanged]);
  return (
    <div class="columns function">
      <Panel title="Function" actions={isChanged && <span class="muted">Unsaved changes</span>}>
        <p class="muted">{about}</p>
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
        {conflict !== undefined && <Conflict draft={draft} conflict={conflict} />}
        {save.error && <Problem error={save.error} />}
        {isMember && (
          <div class="form-actions">
            <Button
              kind="main"
              isDisabled={!isChanged}
              isRunning={save.isRunning}
              onPress={save.run}
            >
              Save
            </Button>
            {isChanged && <Button onPress={draft.undo}>Undo changes</Button>}
            {text.trim() === '' && (
              <Button onPress={() => draft.replace(example)}>Insert example</Button>
            )}
          </div>
        )}
        {isMember && (
          <p class="muted">
            <kbd>Ctrl</kbd>+<kbd>S</kbd> saves, <kbd>Ctrl</kbd>+<kbd>Enter</kbd> runs the function
            again, <kbd>Ctrl</kbd>+<kbd>]</kbd> indents.
          </p>
        )}
      </Panel>
      {isMember && <Panel title="Test">{children}</Panel>}
    </div>
  );
}

function Conflict({ draft, conflict }: { draft: FunctionDraft; conflict: string }) {
  return (
    <div class="problem" role="alert">
      <p class="problem-sentence">Someone else saved this function. Your changes are not saved.</p>
      <div class="function-theirs">
        <Code isRaw label="Current function" text={conflict} />
      </div>
      <div class="form-actions">
        <Button onPress={draft.takeTheirs}>Use theirs</Button>
        <Button onPress={draft.saveMine}>Overwrite with mine</Button>
      </div>
    </div>
  );
}
