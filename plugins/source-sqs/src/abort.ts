import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs one request with a signal of its own, so that the long-lived one collects no listeners; it is aborted `graceMs` later. Resolves to
 * undefined when aborted.
 */
export async function untilAborted<T>(
  signal: AbortSignal,
  request: (signal: AbortSignal) => Promise<T>,
  { graceMs = 0 }: { graceMs?: number } = {},
): Promise<T | undefined> {
  const own = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const abort = () => (timer = setTimeout(() => own.abort(), graceMs));
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await request(own.signal);
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    clearTimeout(timer);
  }
}

/** Ends early when aborted. Never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
