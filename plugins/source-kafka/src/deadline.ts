/** Resolves to true when `work` settles within `ms`, to false when not; what becomes of it then goes unheard. Never rejects. */
export async function settles(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  try {
    return await Promise.race([
      work.then(
        () => true,
        () => true,
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/** Rejects when `signal` aborts, with its reason, or after `ms`, with `expired`. `cancel` must be called when nobody waits any more. */
export function limit(signal: AbortSignal, ms: number, expired: Error): { readonly reached: Promise<never>; cancel(): void } {
  let cancel = () => {};
  const reached = new Promise<never>((_resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    const timer = setTimeout(() => reject(expired), ms);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    cancel = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };
  });
  reached.catch(() => {});
  return { reached, cancel: () => cancel() };
}
