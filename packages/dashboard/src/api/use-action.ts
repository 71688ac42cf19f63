import { useCallback, useRef, useState } from 'preact/hooks';

export interface Action<Args extends unknown[]> {
  /** Does nothing while the action runs. */
  readonly run: (...args: Args) => void;
  readonly isRunning: boolean;
  readonly error: Error | undefined;
  readonly clear: () => void;
}

/** Runs a change that a button makes; one run at a time. */
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
