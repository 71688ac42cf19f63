import { setTimeout as wait } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { backoffMs, withTimeout } from '#core/process/timing';
import { networkReason } from '#core/errors/connection-errors';

const timing = suite('core/process/timing');

function range(
  failures: number,
  options?: { baseMs?: number; capMs?: number },
): { least: number; most: number } {
  const draws = Array.from({ length: 2_000 }, () => backoffMs(failures, options));
  return { least: Math.min(...draws), most: Math.max(...draws) };
}

timing('a wait lies in the upper half of a time that doubles from the base', () => {
  for (const failures of [1, 2, 3, 4, 5, 6]) {
    const full = 100 * 2 ** (failures - 1);
    const { least, most } = range(failures);
    assert.ok(least >= full / 2, `${least} after ${failures} failures`);
    assert.ok(most <= full, `${most} after ${failures} failures`);
  }
});

timing('no wait is longer than the cap, after however many failures', () => {
  for (const failures of [8, 30, 31, 32, 1_000, 1e9, Number.MAX_SAFE_INTEGER]) {
    const { least, most } = range(failures);
    assert.ok(least >= 5_000 && most <= 10_000, `${least} to ${most} after ${failures} failures`);
  }
  assert.ok(range(100, { baseMs: 50, capMs: 2_000 }).most <= 2_000);
});

timing('waits differ, so that those who failed together do not come back together', () => {
  assert.ok(new Set(Array.from({ length: 100 }, () => backoffMs(6))).size > 50);
});

timing('work that settles in time settles it', async () => {
  assert.is(await withTimeout(Promise.resolve(7), 1_000), 7);
  const error = await withTimeout(Promise.reject(new Error('broken')), 1_000).catch(
    (it: unknown) => it,
  );
  assert.is((error as Error).message, 'broken');
});

timing(
  'work that takes longer rejects with ETIMEDOUT, and what becomes of it goes unheard',
  async () => {
    const late = wait(30).then(() => Promise.reject(new Error('too late to matter')));
    const error = await withTimeout(late, 5, 'it was not done after 5 ms').catch(
      (it: unknown) => it,
    );
    assert.is((error as Error).message, 'it was not done after 5 ms');
    assert.is(networkReason(error), 'no answer in time');
    await wait(50);
  },
);

timing.run();
