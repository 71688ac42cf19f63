import type { CallOptions } from '@gateway/client';
import { useEffect, useState } from 'preact/hooks';

/** The pause in typing before the text is tested. */
const PAUSE_MS = 400;

export interface PreviewState<Result> {
  /** The result of the last finished test; kept during the next. */
  readonly result: Result | undefined;
  readonly error: Error | undefined;
  /** True if the result belongs to the current input. */
  readonly isCurrent: boolean;
  /** Repeats the test: an endpoint or subscription may have changed. */
  readonly run: () => void;
}

/**
 * Tests a function on a sample whenever either changes, once typing pauses. Undefined tests
 * nothing.
 */
export function usePreview<Test, Result>(
  test: Test | undefined,
  attempt: (test: Test, options: CallOptions) => Promise<Result>,
): PreviewState<Result> {
  const key = test && JSON.stringify(test);
  const [state, setState] = useState<{ key?: string; result?: Result; error?: Error }>({});
  const [round, setRound] = useState(0);
  const tried = key === undefined ? undefined : `${round} ${key}`;
  useEffect(() => {
    if (tried === undefined || !test) return undefined;
    const closing = new AbortController();
    const { signal } = closing;
    const timer = setTimeout(() => {
      attempt(test, { signal }).then(
        (result) => signal.aborted || setState({ key: tried, result }),
        (error: unknown) => signal.aborted || setState({ key: tried, error: error as Error }),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      closing.abort();
    };
  }, [tried]);
  const { result, error } = state;
  return { result, error, isCurrent: state.key === tried, run: () => setRound((it) => it + 1) };
}
