import { setTimeout as sleep } from 'node:timers/promises';

/** Values that `until` keeps waiting for, like an empty list. Any other value ends the wait. */
type Falsy = false | undefined | null | 0 | '';

const isThere = <T>(found: T | Falsy): found is T =>
  Array.isArray(found) ? found.length > 0 : !!found;

/**
 * Polls until the condition returns a truthy value or a non-empty list, and returns it.
 * @param what the end of the sentence "waited 60 s for …": names what is expected, for the reader
 * of a failed run
 * @param condition polled; an error counts as not yet, and the last one is reported on a timeout
 * @param options timeout and poll interval
 * @throws on a timeout
 */
export async function until<T>(
  what: string,
  condition: () => T | Falsy | Promise<T | Falsy>,
  { withinMs = 60_000, everyMs = 20 }: { withinMs?: number; everyMs?: number } = {},
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    let problem: unknown;
    try {
      const found = await within(condition(), Math.max(1, deadline - Date.now()), what);
      if (isThere(found)) return found;
    } catch (error) {
      problem = error;
    }
    if (Date.now() + everyMs > deadline) {
      const last = problem instanceof Error ? `; the last look failed: ${problem.message}` : '';
      throw new Error(`waited ${withinMs / 1000} s for ${what}${last}`, { cause: problem });
    }
    await sleep(everyMs);
  }
}

/**
 * Adds a timeout to a promise.
 * @param what the end of the sentence "waited 5 s for …"
 * @throws if the promise has not settled after `timeoutMs`
 */
export async function within<T>(
  promise: T | Promise<T>,
  timeoutMs: number,
  what: string,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const overrun = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`waited ${timeoutMs / 1000} s for ${what}`)),
      timeoutMs,
    );
  });
  try {
    return await Promise.race([promise, overrun]);
  } finally {
    clearTimeout(timer);
  }
}
