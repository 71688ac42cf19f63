import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { nextAttemptInMs, retryAfterSeconds } from '#agent/delivery/attempt';
import type { Strategy } from '#store/config/snapshot';

const schedule = suite('agent/delivery/attempt');

const strategies: Strategy[] = (['linear', 'exponential'] as const).flatMap((type) =>
  [1, 10, 333, 86_400].flatMap((duration) =>
    [0, 1, 10, 100, 1000].flatMap((retry_count) => [
      { type, duration, retry_count },
      ...[1, 60, 7200, 604_800].map((max_seconds) => ({ type, duration, retry_count, max_seconds })),
    ]),
  ),
);
const asked = [null, 0, 1, 30, 3_600, 86_400, 999_999_999];
const corners = [0, 0.25, 0.5, 0.999_999];

/** Every wait of a policy, with the least and the most of its jitter. */
function waits(strategy: Strategy, retryAfter: number | null, random: () => number): (number | null)[] {
  return Array.from({ length: strategy.retry_count + 2 }, (_, n) => nextAttemptInMs(strategy, n + 1, retryAfter, random));
}

schedule('there are as many waits as retries, each a whole number of milliseconds, none negative', () => {
  for (const strategy of strategies) {
    for (const retryAfter of asked) {
      for (const corner of corners) {
        const all = waits(strategy, retryAfter, () => corner);
        assert.ok(all.slice(0, strategy.retry_count).every((wait) => wait !== null && Number.isSafeInteger(wait) && wait >= 0));
        assert.equal(all.slice(strategy.retry_count), [null, null]);
      }
    }
  }
});

schedule('with the same draw no wait is shorter than the one before', () => {
  for (const strategy of strategies) {
    for (const corner of corners) {
      const all = waits(strategy, null, () => corner).slice(0, strategy.retry_count) as number[];
      assert.ok(all.every((wait, n) => n === 0 || wait >= all[n - 1]!));
    }
  }
});

schedule('linear waits the same time, whatever is drawn', () => {
  const strategy: Strategy = { type: 'linear', duration: 30, retry_count: 5 };
  for (const corner of corners) assert.equal(waits(strategy, null, () => corner).slice(0, 5), Array(5).fill(30_000));
});

schedule('exponential doubles up to its cap, and the draw decides the upper half alone', () => {
  const strategy: Strategy = { type: 'exponential', duration: 10, retry_count: 8, max_seconds: 300 };
  const full = [10, 20, 40, 80, 160, 300, 300, 300].map((seconds) => seconds * 1000);
  assert.equal(
    waits(strategy, null, () => 0).slice(0, 8),
    full.map((ms) => ms / 2),
  );
  assert.equal(waits(strategy, null, () => 1).slice(0, 8), full);
  for (let n = 0; n < 10_000; n++) {
    const attempt = 1 + (n % 8);
    const wait = nextAttemptInMs(strategy, attempt, null)!;
    assert.ok(wait >= full[attempt - 1]! / 2 && wait <= full[attempt - 1]!);
  }
});

schedule('without a cap of its own an exponential wait ends at two hours', () => {
  assert.is(
    nextAttemptInMs({ type: 'exponential', duration: 10, retry_count: 1000 }, 1000, null, () => 1),
    7_200_000,
  );
});

schedule('what the endpoint asks for prolongs a wait, never shortens it, and ends at a day', () => {
  const strategy: Strategy = { type: 'linear', duration: 60, retry_count: 3 };
  assert.is(nextAttemptInMs(strategy, 1, 5), 60_000);
  assert.is(nextAttemptInMs(strategy, 1, 90.5), 90_500);
  assert.is(nextAttemptInMs(strategy, 1, 999_999_999), 86_400_000);
  assert.is(nextAttemptInMs({ ...strategy, duration: 200_000 }, 1, 999_999_999), 200_000_000);
  assert.is(nextAttemptInMs(strategy, 4, 90), null);
});

// https://www.rfc-editor.org/rfc/rfc9110#name-retry-after
schedule('Retry-After is seconds or a date', () => {
  const nowMs = Date.UTC(2026, 10, 21, 12, 0, 0);
  assert.is(retryAfterSeconds('120', nowMs), 120);
  assert.is(retryAfterSeconds(' 0 ', nowMs), 0);
  assert.is(retryAfterSeconds('Sat, 21 Nov 2026 12:02:00 GMT', nowMs), 120);
  assert.is(retryAfterSeconds('Sat, 21 Nov 2026 11:00:00 GMT', nowMs), 0);
  assert.is(retryAfterSeconds('99999999999', nowMs), 99_999_999_999);
});

schedule('a Retry-After that makes no sense is none', () => {
  const nowMs = Date.UTC(2026, 10, 21);
  for (const value of [
    undefined,
    '',
    ' ',
    'soon',
    'after 2030',
    '120s',
    '1,2',
    '-1',
    '1.5',
    '-120',
    '1e3',
    'NaN',
    '0x10',
    'Sat, soon',
    '2026-11-22T00:00:00Z',
  ]) {
    assert.is(retryAfterSeconds(value, nowMs), null, value);
  }
});

schedule.run();
