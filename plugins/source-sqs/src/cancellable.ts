import { setTimeout as sleep } from 'node:timers/promises';

/** Runs one request with a signal of its own, so that the long-lived one does not gather listeners. Resolves to undefined when aborted. */
export async function cancellable<T>(signal: AbortSignal, request: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
  const own = new AbortController();
  const abort = () => own.abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await request(own.signal);
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Ends early when aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
