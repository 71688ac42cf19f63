interface RepeatOptions {
  readonly afterMs?: number;
  readonly retryMs: number;
  /** @param isFirst the first of consecutive failures */
  failed(error: unknown, isFirst: boolean): void;
  recovered?(): void;
}

/**
 * `work` returns the milliseconds until its next run. The returned function aborts `work` and waits
 * for it to end.
 */
export function repeat(
  work: (signal: AbortSignal) => Promise<number>,
  { afterMs = 0, retryMs, failed, recovered }: RepeatOptions,
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
    // Unref the timer: a process that failed to start must be able to exit.
    timer = setTimeout(() => void (working = once()), ms).unref();
  };
  if (afterMs > 0) schedule(afterMs);
  else working = once();
  return async () => {
    stop.abort();
    clearTimeout(timer);
    await working;
  };
}

/**
 * Runs never overlap. Calls during a run share the next one, because the running one may have begun
 * before what they are about.
 */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running = Promise.resolve();
  let next: Promise<void> | undefined;
  return () =>
    (next ??= running
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return (running = work());
      }));
}

/** Doubles with each consecutive failure; the upper half is random. */
export function backoffMs(failures: number, { baseMs = 100, capMs = 10_000 } = {}): number {
  const full = Math.min(capMs, baseMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(full / 2 + Math.random() * (full / 2));
}

/**
 * Does not cancel `work`. After `ms`, rejects with an ETIMEDOUT error whose message is `sentence`.
 */
export function withTimeout<T>(
  work: Promise<T>,
  ms: number,
  sentence = 'no answer in time',
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(Object.assign(new Error(sentence), { code: 'ETIMEDOUT' })),
      ms,
    );
    void work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
