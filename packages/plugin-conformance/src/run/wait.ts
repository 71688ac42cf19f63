import { setTimeout as sleep } from 'node:timers/promises';
import { Broken } from './judge.js';

const LOOK_EVERY_MS = 20;

/**
 * Waits until the condition holds.
 * @param reason what was seen when it does not, as a sentence without its full stop
 * @throws `Broken` with it after `withinMs`
 */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  { withinMs, reason }: { readonly withinMs: number; readonly reason: () => string },
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Broken(`${reason()}, within ${withinMs / 1000} s`);
    await sleep(LOOK_EVERY_MS);
  }
}

/**
 * Watches that the condition holds all the time.
 * @throws `Broken` with the reason as soon as it does not
 */
export async function always(
  condition: () => boolean | Promise<boolean>,
  { forMs, reason }: { readonly forMs: number; readonly reason: () => string },
): Promise<void> {
  const end = performance.now() + forMs;
  do {
    if (!(await condition())) throw new Broken(reason());
    await sleep(LOOK_EVERY_MS);
  } while (performance.now() < end);
}
