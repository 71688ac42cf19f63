import { setImmediate as nextTurn } from 'node:timers/promises';

/** Time after which long work yields to the event loop. */
export const SLICE_MS = 2;

/**
 * Runs a generator, and yields to the event loop at its first `yield` after each 2 ms. Yields
 * should be less than 1 ms apart. Settles like the generator.
 * @param onSlice receives the milliseconds of each slice
 * @param pause precedes further slices; at least one turn
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
