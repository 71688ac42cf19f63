import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { inSlices, SLICE_MS } from '#core/process/slices';

const slices = suite('core/process/slices');

/** Yields `steps` steps, each longer than a slice. */
function* slow(steps: number): Generator<void, string> {
  for (let n = 0; n < steps; n++) {
    const untilMs = performance.now() + SLICE_MS;
    while (performance.now() < untilMs);
    yield;
  }
  return 'done';
}

slices(
  'the event loop turns between the slices of long work, and the end is what it returns',
  async () => {
    let turns = 0;
    const turn = (): void => void (turns++, (next = setImmediate(turn)));
    let next = setImmediate(turn);
    const taken: number[] = [];
    assert.is(await inSlices(slow(5), (ms) => taken.push(ms)), 'done');
    clearImmediate(next);
    assert.ok(turns >= 5, `${turns} turns`);
    assert.is(taken.length, 6);
    assert.ok(taken.slice(0, 5).every((ms) => ms >= SLICE_MS));
  },
);

slices('a timer that is due fires between slices', async () => {
  let fired = false;
  setTimeout(() => (fired = true), 1);
  const seen: boolean[] = [];
  await inSlices(
    (function* () {
      for (const step of slow(3)) {
        seen.push(fired);
        yield step;
      }
    })(),
  );
  // The first turn can start after its timers.
  assert.equal([seen[0], seen[2]], [false, true]);
});

slices('what is short ends in one slice, and what is thrown is thrown', async () => {
  let count = 0;
  await inSlices(
    (function* () {
      yield;
    })(),
    () => count++,
  );
  assert.is(count, 1);
  const broken = inSlices(
    (function* () {
      throw new Error('broken');
    })(),
    () => count++,
  );
  assert.is(await broken.catch((error: Error) => error.message), 'broken');
  assert.is(count, 2);
});

slices.run();
