import { GatewayApiError, type CallOptions } from '@gateway/client';
import { useCallback, useRef, useState } from 'preact/hooks';
import { changes } from './read.js';

export interface Action<Args extends unknown[]> {
  /** No effect while it is running. */
  readonly run: (...args: Args) => void;
  readonly isRunning: boolean;
  readonly error: Error | undefined;
  readonly clear: () => void;
}

/**
 * One call at a time. When it has succeeded, everything shown is read again.
 *
 * @param isChange false for a call that changes nothing
 */
export function useAction<Args extends unknown[]>(
  work: (...args: Args) => Promise<unknown>,
  isChange = true,
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
    const end = (error?: Error) => {
      isRunning.current = false;
      setState({ isRunning: false, error });
    };
    latest.current(...args).then(() => {
      end();
      if (isChange) changes.value++;
    }, end);
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

export function changed<Values extends object>(before: Values, after: Values): Partial<Values> {
  const entries = Object.entries(after) as [keyof Values, unknown][];
  return Object.fromEntries(
    entries.filter(([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field])),
  ) as Partial<Values>;
}

export interface Versioned {
  readonly uid: string;
  readonly updated_at: string;
}

/** The server refuses the change of another version with an error that `isStale` recognises. */
export function ifMatch({ updated_at: version }: Versioned): CallOptions {
  return { headers: { 'if-match': `"${version}"` } };
}

export function isStale(error: unknown): boolean {
  return error instanceof GatewayApiError && error.code === 'stale';
}
