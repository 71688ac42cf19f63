import { setTimeout as sleep } from 'node:timers/promises';

/** What `until` may wait for: anything that is not one of these ends the wait, and a list that is not empty. */
type Falsy = false | undefined | null | 0 | '';

const isThere = <T>(found: T | Falsy): found is T => (Array.isArray(found) ? found.length > 0 : !!found);

/**
 * Waits until the condition gives something truthy, or a list that is not empty, and gives that back.
 * @param what the end of the sentence "waited 60 s for …": name what is expected, as a reader of a failed run needs it
 * @param condition asked again and again; when it throws, that counts as not yet, and the last error is told at the end
 * @param options how long in all, and how long between two questions
 * @throws when the deadline has passed
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
 * A promise with a deadline.
 * @param what the end of the sentence "waited 5 s for …"
 * @throws when the promise has not settled after `timeoutMs`
 */
export async function within<T>(promise: T | Promise<T>, timeoutMs: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const overrun = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${timeoutMs / 1000} s for ${what}`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, overrun]);
  } finally {
    clearTimeout(timer);
  }
}
