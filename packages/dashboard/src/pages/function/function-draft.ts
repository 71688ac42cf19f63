import type { CallOptions } from '@gateway/client';
import { useState } from 'preact/hooks';
import { type Action, ifMatch, isStale, useAction, type Versioned } from '../../api/index.js';
import { toast } from '../../components/index.js';

export interface FunctionPlace<It extends Versioned> {
  readonly textOf: (it: It) => string | null;
  readonly read: (uid: string) => Promise<It>;
  readonly write: (uid: string, text: string | null, options: CallOptions) => Promise<It>;
  readonly saved: string;
}

export interface FunctionDraft {
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
