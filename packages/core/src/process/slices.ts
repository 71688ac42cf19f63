import { setImmediate as nextTurn } from 'node:timers/promises';

/** Milliseconds of the event loop that long work takes at a time: what everything else waits for it. */
export const SLICE_MS = 2;

/**
 * Runs a generator to its end, and lets the event loop turn at the first `yield` after each two milliseconds. Resolves with what it returns, rejects with what it
 * throws. Keep its yields less than a millisecond apart.
 * @param onSlice gets the milliseconds of each slice: the turns in between are not counted
 * @param pause what the next slice waits for, of at least a turn
 */
export async function inSlices<Result>(
  steps: Generator<unknown, Result>,
  onSlice?: (ms: number) => void,
  pause: () => Promise<unknown> = nextTurn,
): Promise<Result> {
  for (;;) {
    const startedAtMs = performance.now();
    try {
      let step;
      do step = steps.next();
      while (!step.done && performance.now() - startedAtMs < SLICE_MS);
      if (step.done) return step.value;
    } finally {
      onSlice?.(performance.now() - startedAtMs);
    }
    await pause();
  }
}
