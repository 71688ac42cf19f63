import { useCallback, useState } from 'preact/hooks';
import { usePolling } from './use-polling.js';

export interface Resource<Data> {
  /** What was read last; kept while it is read again. */
  readonly data: Data | undefined;
  /** Why the last read failed; undefined after one that succeeded. */
  readonly error: Error | undefined;
  /** Nothing was read yet, and nothing failed. */
  readonly isLoading: boolean;
  /** Reads again. */
  readonly refresh: () => void;
}

/** What pages showed before, so that going back shows it at once while it is read again. */
const shownBefore = new Map<string, unknown>();
const KEPT = 60;

/**
 * Reads something of the API for a page.
 *
 * @param key names it, with all that `load` depends on: another key is read anew. Undefined reads nothing
 * @param options.everyMs reads it again so often while the page is visible
 */
export function useResource<Data>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<Data>,
  { everyMs }: { everyMs?: number | undefined } = {},
): Resource<Data> {
  const [state, setState] = useState<{ key: string | undefined; data: Data | undefined; error: Error | undefined }>({
    key,
    data: undefined,
    error: undefined,
  });
  const [round, setRound] = useState(0);
  const refresh = useCallback(() => setRound((it) => it + 1), []);

  const read = async (signal: AbortSignal): Promise<void> => {
    try {
      const data = await load(signal);
      if (signal.aborted) return;
      remember(key!, data);
      setState({ key, data, error: undefined });
    } catch (error) {
      if (signal.aborted) return;
      setState((before) => ({ key, data: before.key === key ? before.data : undefined, error: error as Error }));
    }
  };
  usePolling(read, everyMs, [key, round], key !== undefined);

  const isCurrent = state.key === key;
  const data = (isCurrent ? state.data : undefined) ?? (key === undefined ? undefined : (shownBefore.get(key) as Data | undefined));
  const error = isCurrent ? state.error : undefined;
  return { data, error, isLoading: data === undefined && error === undefined, refresh };
}

function remember(key: string, data: unknown): void {
  shownBefore.delete(key);
  shownBefore.set(key, data);
  const oldest = shownBefore.keys().next();
  if (shownBefore.size > KEPT && !oldest.done) shownBefore.delete(oldest.value);
}

/** Forgets what pages showed: another user may sign in. */
export function forgetResources(): void {
  shownBefore.clear();
}
