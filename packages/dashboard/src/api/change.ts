import { GatewayApiError, type CallOptions } from '@gateway/client';
import { useCallback, useRef, useState } from 'preact/hooks';

export interface Action<Args extends unknown[]> {
  /** No effect while it is running. */
  readonly run: (...args: Args) => void;
  readonly isRunning: boolean;
  readonly error: Error | undefined;
  readonly clear: () => void;
}

/** One call at a time. */
export function useAction<Args extends unknown[]>(
  work: (...args: Args) => Promise<unknown>,
): Action<Args> {
  const [state, setState] = useState<{ isRunning: boolean; error: Error | undefined }>({
    isRunning: false,
    error: undefined,
  });
  const latest = useRef(work);
  latest.current = work;
  const isRunning = useRef(false);
  const run = useCallback((...args: Args) => {
    if (isRunning.current) return;
    isRunning.current = true;
    setState({ isRunning: true, error: undefined });
    latest
      .current(...args)
      .then(
        () => undefined,
        (error: unknown) => error as Error,
      )
      .then((error) => {
        isRunning.current = false;
        setState({ isRunning: false, error });
      })
      .catch(() => undefined);
  }, []);
  const clear = useCallback(() => setState((it) => ({ ...it, error: undefined })), []);
  return { run, ...state, clear };
}

export interface Draft<Values> {
  readonly values: Values;
  /** As in `onChange={draft.set('name')}`. */
  readonly set: <Field extends keyof Values>(field: Field) => (value: Values[Field]) => void;
  readonly replace: (values: Values) => void;
}

export function useDraft<Values extends object>(initial: Values): Draft<Values> {
  const [values, replace] = useState(initial);
  return {
    values,
    set: (field) => (value) => replace((before) => ({ ...before, [field]: value })),
    replace,
  };
}

/** For a partial update. */
export function changed<Values extends object>(before: Values, after: Values): Partial<Values> {
  const entries = Object.entries(after) as [keyof Values, unknown][];
  return Object.fromEntries(
    entries.filter(([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field])),
  ) as Partial<Values>;
}

interface Versioned {
  readonly updated_at: string;
}

export interface Edit<Resource, Changes> {
  /**
   * The version that the changes apply to: the one read when the edit began, or a newer one that
   * another user saved.
   */
  readonly base: Resource;
  readonly save: (changes: Changes) => void;
  readonly isRunning: boolean;
  /** Undefined for a conflict. */
  readonly error: Error | undefined;
  /** A newer version saved by another user, which prevented the save. */
  readonly conflict: Resource | undefined;
  readonly saveAnyway: () => void;
  readonly takeTheirs: () => void;
}

/**
 * Optimistic locking: saves the changes only if the resource has not changed since it was read.
 *
 * @param resource the resource as first read; later values are ignored
 * @param edit.write sends the changes with the given options and returns the saved resource
 * @param edit.read returns the current resource
 */
export function useEdit<Resource extends Versioned, Changes>(
  resource: Resource,
  edit: {
    readonly write: (changes: Changes, options: CallOptions) => Promise<Resource>;
    readonly read: () => Promise<Resource>;
    readonly onSaved: (saved: Resource) => void;
  },
): Edit<Resource, Changes> {
  const [base, setBase] = useState(resource);
  const [conflict, setConflict] = useState<Resource>();
  const refused = useRef<Changes | undefined>(undefined);
  const action = useAction(async (changes: Changes, version: Resource) => {
    try {
      const saved = await edit.write(changes, {
        headers: { 'if-match': `"${version.updated_at}"` },
      });
      setConflict(undefined);
      setBase(saved);
      edit.onSaved(saved);
    } catch (error) {
      if (!(error instanceof GatewayApiError && error.code === 'stale')) throw error;
      refused.current = changes;
      setConflict(await edit.read());
    }
  });
  return {
    base,
    save: (changes) => action.run(changes, base),
    isRunning: action.isRunning,
    error: action.error,
    conflict,
    saveAnyway: () =>
      conflict && refused.current !== undefined && action.run(refused.current, conflict),
    takeTheirs: () => {
      if (conflict) setBase(conflict);
      setConflict(undefined);
      action.clear();
    },
  };
}
