import { useEffect, useRef } from 'preact/hooks';

/**
 * Reads immediately, when a dependency changes, and periodically while the browser shows the page.
 * An aborted `read` must change nothing.
 *
 * @param everyMs pause between the end of a read and the next one; undefined reads once
 */
export function usePolling(
  read: (signal: AbortSignal) => Promise<void>,
  everyMs: number | undefined,
  dependencies: readonly unknown[],
  isWanted = true,
): void {
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    if (!isWanted) return undefined;
    const closing = new AbortController();
    const { signal } = closing;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const turn = async (): Promise<void> => {
      await latest.current(signal);
      if (!signal.aborted && everyMs !== undefined) timer = setTimeout(next, everyMs);
    };
    const next = () => {
      if (document.hidden)
        document.addEventListener('visibilitychange', () => void turn(), { once: true, signal });
      else void turn();
    };
    void turn();
    return () => {
      clearTimeout(timer);
      closing.abort();
    };
  }, [...dependencies, everyMs, isWanted]);
}
