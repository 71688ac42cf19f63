import { setTimeout as sleep } from 'node:timers/promises';
import { Broken } from './judge.js';

/** How many of each kind of resource keep the process alive: `{ TCPSocketWrap: 2, Timeout: 1 }`. */
type Census = ReadonlyMap<string, number>;

const SAMPLES = 10;
const SAMPLE_EVERY_MS = 20;

/**
 * Does the work and looks whether it leaves anything behind that would keep the process alive: sockets, timers, servers, threads.
 * What the broker of the rig opens in the same process and closes a little later is given time.
 * @param work what is to leave nothing; do it once before, so that what is opened once and for all is there
 * @throws `Broken` that counts what is left
 */
export async function leavesNothing(work: () => Promise<void>, withinMs: number): Promise<void> {
  const before = await highest();
  await work();
  const deadline = performance.now() + withinMs;
  for (;;) {
    const left = beyond(census(), before);
    if (left.length === 0) return;
    if (performance.now() > deadline) throw new Broken(`left behind: ${left.join(', ')}`);
    await sleep(SAMPLE_EVERY_MS);
  }
}

function census(): Census {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** The most of each kind over a few looks, because what a rig does in between comes and goes. */
async function highest(): Promise<Census> {
  const most = new Map<string, number>();
  for (let at = 0; at < SAMPLES; at++) {
    await sleep(SAMPLE_EVERY_MS);
    for (const [kind, count] of census()) most.set(kind, Math.max(count, most.get(kind) ?? 0));
  }
  return most;
}

function beyond(after: Census, before: Census): string[] {
  return [...after].flatMap(([kind, count]) => {
    const more = count - (before.get(kind) ?? 0);
    return more > 0 ? [`${more} ${kind}`] : [];
  });
}
