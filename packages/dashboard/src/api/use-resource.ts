import { useCallback, useState } from 'preact/hooks';
import { usePolling } from './use-polling.js';

export interface Resource<Data> {
  /** The last data read; kept during the next read. */
  readonly data: Data | undefined;
  /** Why the last read failed; undefined if it succeeded. */
  readonly error: Error | undefined;
  /** True until the first read succeeds or fails. */
  readonly isLoading: boolean;
  readonly refresh: () => void;
}

/** A cache of shown data: the back button shows it immediately while it is read again. */
const shownBefore = new Map<string, unknown>();
const KEPT = 60;

/**
 * Reads data of the API for a page.
 *
 * @param key identifies everything that `load` depends on: a new key reads again, undefined reads
 * nothing
 * @param options.everyMs poll interval while the page is visible
 */
export function useResource<Data>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<Data>,
  { everyMs }: { everyMs?: number | undefined } = {},
): Resource<Data> {
  const [state, setState] = useState<{
    key: string | undefined;
    data: Data | undefined;
    error: Error | undefined;
  }>({
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
      setState((before) => ({
        key,
        data: before.key === key ? before.data : undefined,
        error: error as Error,
      }));
    }
  };
  usePolling(read, everyMs, [key, round], key !== undefined);

  const isCurrent = state.key === key;
  const data =
    (isCurrent ? state.data : undefined) ??
    (key === undefined ? undefined : (shownBefore.get(key) as Data | undefined));
  const error = isCurrent ? state.error : undefined;
  return { data, error, isLoading: data === undefined && error === undefined, refresh };
}

function remember(key: string, data: unknown): void {
  shownBefore.delete(key);
  shownBefore.set(key, data);
  const oldest = shownBefore.keys().next();
  if (shownBefore.size > KEPT && !oldest.done) shownBefore.delete(oldest.value);
}

/** Clears the cache: another user may sign in. */
export function forgetResources(): void {
  shownBefore.clear();
}
