import { useEffect, useRef, useState } from 'preact/hooks';

/** One request of a bulk operation: works for some seconds and returns where to continue. */
export interface Step {
  /** Rows that were, or would be, processed. */
  readonly count: number;
  readonly left: number;
  /** The part of `count` that waits for its endpoint. */
  readonly held: number;
  readonly next: string | null;
}

export type RunStep = (
  options: { dry_run: boolean; after?: string },
  signal: AbortSignal,
) => Promise<Step>;

export interface Batch {
  readonly phase: 'counting' | 'counted' | 'running' | 'stopped' | 'done';
  /** The result of the dry run. */
  readonly found: Omit<Step, 'next'>;
  readonly done: number;
  readonly error: Error | undefined;
  readonly start: () => void;
  readonly stop: () => void;
}

const NOTHING = { count: 0, left: 0, held: 0 };

/** Counts the rows that a filter matches, then processes them until the end or until stopped. */
export function useBatch(step: RunStep): Batch {
  const [state, setState] = useState<Omit<Batch, 'start' | 'stop'>>({
    phase: 'counting',
    found: NOTHING,
    done: 0,
    error: undefined,
  });
  const latest = useRef(step);
  latest.current = step;
  const closing = useRef(new AbortController());

  const each = async (
    isDry: boolean,
    tell: (sum: Omit<Step, 'next'>) => void,
    signal: AbortSignal,
  ): Promise<void> => {
    let sum = NOTHING;
    for (let after: string | null | undefined; after !== null && !signal.aborted;) {
      const { next, ...counts } = await latest.current(
        { dry_run: isDry, ...(after ? { after } : {}) },
        signal,
      );
      sum = {
        count: sum.count + counts.count,
        left: sum.left + counts.left,
        held: sum.held + counts.held,
      };
      tell(sum);
      after = next;
    }
  };
  const run = (isDry: boolean) => {
    const { signal } = (closing.current = new AbortController());
    const end = isDry ? 'counted' : 'done';
    each(
      isDry,
      (sum) => setState((it) => ({ ...it, ...(isDry ? { found: sum } : { done: sum.count }) })),
      signal,
    ).then(
      () => setState((it) => ({ ...it, phase: signal.aborted ? 'stopped' : end })),
      (error: unknown) =>
        setState((it) => ({
          ...it,
          phase: 'stopped',
          error: signal.aborted ? undefined : (error as Error),
        })),
    );
  };

  useEffect(() => {
    run(true);
    return () => closing.current.abort();
  }, []);

  return {
    ...state,
    start: () => {
      setState((it) => ({ ...it, phase: 'running', error: undefined }));
      run(false);
    },
    stop: () => closing.current.abort(),
  };
}
