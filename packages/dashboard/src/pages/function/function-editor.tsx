import type { CallOptions } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type Action, ifMatch, isStale, useAction, type Versioned } from '../../api/index.js';
import { Button, Code, Panel, Problem, toast } from '../../components/index.js';
import { may } from '../../session/session.js';
import type { PreviewState } from '../preview/preview.js';
import { CodeEditor } from './code-editor.js';

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

export interface FunctionPlace<It extends Versioned> {
  readonly textOf: (it: It) => string | null;
  readonly read: (uid: string) => Promise<It>;
  readonly write: (uid: string, text: string | null, options: CallOptions) => Promise<It>;
  readonly saved: string;
}

interface FunctionDraft {
  readonly text: string;
  /** Changes when the text is replaced other than by typing. */
  readonly revision: number;
  readonly type: (text: string) => void;
  readonly replace: (text: string) => void;
  readonly isChanged: boolean;
  readonly undo: () => void;
  readonly save: Action<[]>;
  readonly conflict: string | undefined;
  readonly takeTheirs: () => void;
  readonly saveMine: () => void;
}

interface DraftState<It> {
  /** The version on which the edit is based. */
  readonly base: It;
  readonly text: string;
  readonly revision: number;
}

/** By owner, so that the user can visit another page. */
const kept = new Map<string, DraftState<unknown>>();

export function useFunctionDraft<It extends Versioned>(
  owner: It,
  place: FunctionPlace<It>,
): FunctionDraft {
  const functionOf = (it: It) => place.textOf(it) ?? '';
  const [state, setState] = useState<DraftState<It>>(
    () =>
      (kept.get(owner.uid) as DraftState<It> | undefined) ?? {
        base: owner,
        text: functionOf(owner),
        revision: 0,
      },
  );
  const [conflict, setConflict] = useState<It>();
  const { base, text, revision } = state;
  const isChanged = text !== functionOf(base);

  const change = (make: (before: DraftState<It>) => Partial<DraftState<It>>) =>
    setState((before) => {
      const next = { ...before, ...make(before) };
      if (next.text === functionOf(next.base)) kept.delete(owner.uid);
      else kept.set(owner.uid, next);
      return next;
    });
  const replace = (next: string, on = base) =>
    change((before) => ({ base: on, text: next, revision: before.revision + 1 }));

  const store = async (on: It): Promise<void> => {
    try {
      const saved = await place.write(on.uid, text.trim() === '' ? null : text, ifMatch(on));
      setConflict(undefined);
      change(() => ({ base: saved }));
      toast(place.saved);
    } catch (error) {
      if (!isStale(error)) throw error;
      const now = await place.read(on.uid);
      // No conflict if another user changed only other properties, such as the name.
      if (functionOf(now) === functionOf(on)) return store(now);
      setConflict(now);
    }
  };
  const save = useAction(() => (isChanged ? store(base) : Promise.resolve()));
  const saveMine = useAction(() => store(conflict ?? base));
  return {
    text,
    revision,
    type: (next) => change(() => ({ text: next })),
    replace,
    isChanged,
    undo: () => replace(functionOf(base)),
    save: { ...save, error: save.error ?? saveMine.error },
    conflict: conflict && functionOf(conflict),
    takeTheirs: () => {
      if (conflict) replace(functionOf(conflict), conflict);
      setConflict(undefined);
    },
    saveMine: saveMine.run,
  };
}
