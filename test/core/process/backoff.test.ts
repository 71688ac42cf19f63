import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { backoffMs } from '#core/process/backoff';

const backoff = suite('core/process/backoff');

/** The shortest and the longest of many draws. */
function range(failures: number, options?: { baseMs?: number; capMs?: number }): { least: number; most: number } {
  const draws = Array.from({ length: 2_000 }, () => backoffMs(failures, options));
  return { least: Math.min(...draws), most: Math.max(...draws) };
}

backoff('a wait lies in the upper half of a time that doubles from the base', () => {
  for (const failures of [1, 2, 3, 4, 5, 6]) {
    const full = 100 * 2 ** (failures - 1);
    const { least, most } = range(failures);
    assert.ok(least >= full / 2, `${least} after ${failures} failures`);
    assert.ok(most <= full, `${most} after ${failures} failures`);
  }
});

backoff('no wait is longer than the cap, after however many failures', () => {
  for (const failures of [8, 30, 31, 32, 1_000, 1e9, Number.MAX_SAFE_INTEGER]) {
    const { least, most } = range(failures);
    assert.ok(least >= 5_000 && most <= 10_000, `${least} to ${most} after ${failures} failures`);
  }
  assert.ok(range(100, { baseMs: 50, capMs: 2_000 }).most <= 2_000);
});

backoff('waits differ, so that those who failed together do not come back together', () => {
  assert.ok(new Set(Array.from({ length: 100 }, () => backoffMs(6))).size > 50);
});

backoff.run();
