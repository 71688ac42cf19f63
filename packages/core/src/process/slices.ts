import { setImmediate as nextTurn } from 'node:timers/promises';

export const SLICE_MS = 2;

/**
 * For long asynchronous work to await often: yields to the event loop if 2 ms have passed since it
 * last did.
 */
export function yielding(): () => Promise<void> {
  let sinceMs = performance.now();
  return async () => {
    if (performance.now() - sinceMs < SLICE_MS) return;
    await nextTurn();
    sinceMs = performance.now();
  };
}

/**
 * Yields to the event loop at the first `yield` after every 2 ms. The generator should yield at
 * least every millisecond. Settles like the generator.
 * @param onSlice receives the duration of each slice in milliseconds
 * @param pause runs between slices, and must take at least one turn of the event loop
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
