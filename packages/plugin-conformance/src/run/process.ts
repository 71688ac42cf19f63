import { setTimeout as sleep } from 'node:timers/promises';
import { Broken, must, type Rule } from './rule.js';

/** Collects unhandled rejections and uncaught exceptions, which would otherwise end the process. */
export function watchUnhandledErrors(): { readonly caught: readonly string[]; close(): void } {
  const caught: string[] = [];
  const note = (what: string) => (error: unknown) =>
    void caught.push(`${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  const rejected = note('unhandled rejection');
  const thrown = note('uncaught exception');
  process.on('unhandledRejection', rejected);
  process.on('uncaughtException', thrown);
  return {
    caught,
    close: () => {
      process.off('unhandledRejection', rejected);
      process.off('uncaughtException', thrown);
    },
  };
}

/** The last rule of a suite: what `watchUnhandledErrors` has collected. */
export const letsNothingEscape: Rule<unknown, { readonly unhandled: readonly string[] }> = {
  sentence: 'During all of this no rejection stayed unhandled and no exception reached the process.',
  needs: [],
  alone: true,
  test: async ({ unhandled }) => {
    // A rejection counts as unhandled one turn later.
    await sleep(50);
    must(unhandled.length === 0, unhandled.slice(0, 3).join('\n'));
  },
};

const SAMPLES = 10;
const SAMPLE_EVERY_MS = 20;

/**
 * Does the work three times; fails when the second and third time leave something that keeps the process alive: sockets, timers, servers, threads.
 * The first time opens what is opened once and for all. What a broker in the same process closes a little later is given `withinMs`.
 */
export async function leavesNothingOpen(work: () => Promise<void>, withinMs: number): Promise<void> {
  await work();
  const before = await mostResources();
  await work();
  await work();
  const deadline = performance.now() + withinMs;
  for (;;) {
    const left = [...activeResources()].flatMap(([kind, count]) => {
      const more = count - (before.get(kind) ?? 0);
      return more > 0 ? [`${more} ${kind}`] : [];
    });
    if (left.length === 0) return;
    if (performance.now() > deadline) throw new Broken(`left open: ${left.join(', ')}`);
    await sleep(SAMPLE_EVERY_MS);
  }
}

/** How many resources of each kind keep the process alive: `{ TCPSocketWrap: 2, Timeout: 1 }`. */
function activeResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** The maximum of each kind over some samples, because resources of the rig come and go. */
async function mostResources(): Promise<Map<string, number>> {
  const most = new Map<string, number>();
  for (let sample = 0; sample < SAMPLES; sample++) {
    await sleep(SAMPLE_EVERY_MS);
    for (const [kind, count] of activeResources()) most.set(kind, Math.max(count, most.get(kind) ?? 0));
  }
  return most;
}
