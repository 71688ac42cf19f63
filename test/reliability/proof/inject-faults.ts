import { setTimeout as sleep } from 'node:timers/promises';
import { faultsOf } from './faults.js';
import type { Planned } from './schedule.js';
import type { TestBed } from './test-bed.js';

/** Injects each fault at its time, and repairs it. Resolves when all are repaired. */
export async function injectFaults(
  bed: TestBed,
  planned: readonly Planned[],
  { tell, stopping }: { tell: (line: string) => void; stopping: AbortController },
): Promise<void> {
  const { signal } = stopping;
  const table = faultsOf(bed);
  const beganMs = performance.now();
  const seconds = (ms: number) => (ms / 1000).toFixed(1);
  let done = 0;
  // On a busy machine a service takes longer than planned to come back: the next fault of the same
  // target waits for it.
  const ends = new Map<string, Promise<void>>();
  const doing = [...planned]
    .sort((a, b) => a.atMs - b.atMs)
    .map((one) => {
      const end = after(ends.get(one.target), one);
      ends.set(one.target, end);
      return end;
    });
  try {
    await Promise.all(doing);
  } catch (error) {
    // The test bed ends with it; other faults are not started, or left unrepaired.
    tell(`the faults end early: ${(error as Error).message}`);
    stopping.abort();
    await Promise.allSettled(doing);
    throw error;
  }

  async function after(
    before: Promise<void> | undefined,
    { atMs, kind, target, forMs }: Planned,
  ): Promise<void> {
    const fault = table.find((row) => row.kind === kind);
    if (!fault)
      throw new Error(
        `there is no fault "${kind}"; there are ${table.map((row) => row.kind).join(', ')}`,
      );
    await sleep(atMs, undefined, { signal });
    await before;
    const from = Date.now();
    await fault.begin(bed, target);
    await sleep(forMs, undefined, { signal });
    await fault.end(bed, target);
    bed.faults.push({ kind, target, atMs: from, untilMs: Date.now() });
    const arrived = new Set(bed.receiver.arrivals.map(({ n }) => n)).size;
    tell(
      `${String(++done).padStart(String(planned.length).length)} of ${planned.length}  ${seconds(performance.now() - beganMs).padStart(6)} s  ` +
        `${kind} (${target}) for ${seconds(Date.now() - from)} s; ${bed.produced.length} produced, ${arrived} arrived`,
    );
  }
}
