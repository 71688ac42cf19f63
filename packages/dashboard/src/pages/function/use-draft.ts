import { GatewayApiError, type Source } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { useAction, type Action } from '../../api/use-action.js';
import { toast } from '../../components/feedback/toast.js';

export interface Draft {
  readonly text: string;
  /** Another number when the text was replaced by something else than typing. */
  readonly revision: number;
  readonly type: (text: string) => void;
  readonly replace: (text: string) => void;
  readonly isChanged: boolean;
  readonly undo: () => void;
  readonly save: Action<[]>;
  /** The source as someone else has saved it meanwhile, with another function. */
  readonly conflict: Source | undefined;
  readonly takeTheirs: () => void;
  readonly saveMine: () => void;
}

interface State {
  /** The source that the text was begun from. */
  readonly base: Source;
  readonly text: string;
  readonly revision: number;
}

/** Texts that were not saved, by source: another page may be looked at meanwhile. */
const kept = new Map<string, State>();

const functionOf = ({ body_function: text }: Source) => text ?? '';

/** A function that is changed, until it is saved. */
export function useDraft(source: Source, onSaved: () => void): Draft {
  const [state, setState] = useState<State>(() => kept.get(source.uid) ?? { base: source, text: functionOf(source), revision: 0 });
  const [conflict, setConflict] = useState<Source>();
  const { base, text } = state;
  const isChanged = text !== functionOf(base);

  const change = (make: (before: State) => Partial<State>) =>
    setState((before) => {
      const next = { ...before, ...make(before) };
      if (next.text === functionOf(next.base)) kept.delete(source.uid);
      else kept.set(source.uid, next);
      return next;
    });
  const replace = (next: string, on = base) => change(({ revision }) => ({ base: on, text: next, revision: revision + 1 }));

  const store = async (on: Source): Promise<void> => {
    const body = { body_function: text.trim() === '' ? null : text };
    try {
      const saved = await api().sources.update(on.uid, body, {}, { headers: { 'if-match': `"${on.updated_at}"` } });
      setConflict(undefined);
      change(() => ({ base: saved }));
      toast('The function is saved. Agents use it for the next message.');
      onSaved();
    } catch (error) {
      if (!(error instanceof GatewayApiError) || error.code !== 'stale') throw error;
      const now = await api().sources.get(on.uid);
      // Someone has paused or renamed it: that is no conflict.
      if (functionOf(now) === functionOf(on)) return store(now);
      setConflict(now);
    }
  };
  const save = useAction(() => (isChanged ? store(base) : Promise.resolve()));
  const saveMine = useAction(() => store(conflict ?? base));
  return {
    ...state,
    type: (next) => change(() => ({ text: next })),
    replace,
    isChanged,
    undo: () => replace(functionOf(base)),
    save: { ...save, error: save.error ?? saveMine.error },
    conflict,
    takeTheirs: () => {
      if (conflict) replace(functionOf(conflict), conflict);
      setConflict(undefined);
    },
    saveMine: saveMine.run,
  };
}
