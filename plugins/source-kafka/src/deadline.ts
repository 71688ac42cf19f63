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
