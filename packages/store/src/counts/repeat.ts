/** What becomes of work that fails. */
export interface Repeating {
  /** Until the first time. */
  readonly afterMs?: number;
  /** From a failure until the next time. */
  readonly retryMs: number;
  /** @param isFirst of several failures in a row */
  failed(error: unknown, isFirst: boolean): void;
  /** After one or several failures. */
  recovered?(): void;
}

/**
 * Does some work again and again.
 *
 * @param work returns after how many milliseconds it is to be done again; its signal breaks it off, since whoever stops has better to do than wait for it
 * @returns what stops it: resolves when nothing is under way any more
 */
export function repeat(
  work: (signal: AbortSignal) => Promise<number>,
  { afterMs = 0, retryMs, failed, recovered }: Repeating,
): () => Promise<void> {
  const stop = new AbortController();
  let isFailing = false;
  let timer: NodeJS.Timeout | undefined;
  let working = Promise.resolve();
  const once = async () => {
    let nextMs = retryMs;
    try {
      nextMs = await work(stop.signal);
      if (isFailing) recovered?.();
      isFailing = false;
    } catch (error) {
      if (stop.signal.aborted) return;
      failed(error, !isFailing);
      isFailing = true;
    }
    if (!stop.signal.aborted) schedule(Math.max(1, nextMs));
  };
  const schedule = (ms: number) => {
    timer = setTimeout(() => {
      working = once();
    }, ms);
  };
  if (afterMs > 0) schedule(afterMs);
  else working = once();
  return async () => {
    stop.abort();
    clearTimeout(timer);
    await working;
  };
}
