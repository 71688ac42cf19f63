import { setTimeout as sleep } from 'node:timers/promises';
import { Broken } from './rule.js';

const POLL_MS = 20;

/** What is wrong at the moment, as a sentence without its full stop; anything falsy when nothing is. */
export type Problem = () => string | false | undefined | Promise<string | false | undefined>;

/** Waits until there is no problem. @throws `Broken` with the problem after `withinMs` */
export async function eventually(problem: Problem, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (let wrong = await problem(); wrong; wrong = await problem()) {
    if (performance.now() > deadline) throw new Broken(`${wrong}, within ${withinMs / 1000} s`);
    await sleep(POLL_MS);
  }
}

/** Watches for `forMs` that there is no problem. @throws `Broken` with the problem as soon as there is one */
export async function always(problem: Problem, forMs: number): Promise<void> {
  const end = performance.now() + forMs;
  do {
    const wrong = await problem();
    if (wrong) throw new Broken(wrong);
    await sleep(POLL_MS);
  } while (performance.now() < end);
}
