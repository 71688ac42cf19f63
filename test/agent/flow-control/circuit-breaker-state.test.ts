import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BreakerPolicy } from '#agent/config/breaker-policy';
import {
  backOff,
  closeBreaker,
  countRequests,
  isSpent,
  openBreaker,
  grantProbe,
} from '#agent/flow-control/breaker-record';
import type { BreakerRecord } from '#store/kv/circuit-breakers';

const breaker = suite('agent/flow-control/circuit-breaker-state');

const policy: BreakerPolicy = {
  threshold: 0.5,
  minimumRequests: 10,
  windowMs: 60_000,
  openMs: 1_000,
  openMaxMs: 8_000,
};

function after(
  requests: number,
  failures: number,
  record?: BreakerRecord,
  nowMs = 0,
): BreakerRecord {
  return countRequests(record, { projectId: 'p', requests, failures }, policy, nowMs);
}

const open = after(10, 10);

breaker('an endpoint that asks to wait is left alone as long as it says, at most a day', () => {
  const asked = (ms: number | null, record?: BreakerRecord, nowMs = 0) =>
    backOff(record, 'p', ms, policy, nowMs);
  assert.equal(asked(5_000)?.back_off, { until_ms: 5_000, ms: 5_000 });
  assert.is(asked(5_000)?.state, 'closed');
  assert.is(asked(90_000_000)?.back_off?.ms, 86_400_000);
  assert.is(asked(0), undefined);
  assert.is(asked(3_000, asked(5_000), 1_000), undefined, 'it already waits for longer');
  assert.is(asked(9_000, asked(5_000), 1_000)?.back_off?.until_ms, 10_000);
  assert.equal(asked(1_000, open, 500)?.state, 'open', 'an open breaker stays open');
});

breaker('without a time, back-offs that follow each other double up to a minute', () => {
  let record: BreakerRecord | undefined;
  const lengths: number[] = [];
  for (let k = 0; k < 8; k++) {
    const nowMs = record?.back_off?.until_ms ?? 0;
    record = backOff(record, 'p', null, policy, nowMs)!;
    assert.is(backOff(record, 'p', null, policy, nowMs + 1), undefined, 'once for a burst');
    lengths.push(record.back_off!.ms);
  }
  assert.equal(lengths, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  const { until_ms: untilMs, ms } = record!.back_off!;
  assert.is(backOff(record, 'p', null, policy, untilMs + 2 * ms)?.back_off?.ms, 1_000);
  assert.is(isSpent(record!, untilMs), false);
  assert.is(isSpent(record!, Math.max(untilMs + 2 * ms, record!.until_ms)), true);
});

breaker('requests are counted while an endpoint backs off, and may open its breaker', () => {
  const waiting = backOff(undefined, 'p', 1_000, policy, 0)!;
  const opened = after(10, 10, waiting);
  assert.is(opened.state, 'open');
  assert.equal(opened.back_off, waiting.back_off);
});

breaker('it opens when enough requests were made and enough of them have failed', () => {
  assert.is(after(9, 9).state, 'closed');
  assert.is(after(10, 4).state, 'closed');
  assert.is(after(10, 5).state, 'open');
  assert.is(after(5, 2, after(5, 3)).state, 'open');
  const {
    requests,
    failures,
    since_ms: sinceMs,
    until_ms: untilMs,
  } = after(8, 8, after(4, 0), 500);
  assert.equal([requests, failures, sinceMs, untilMs], [12, 8, 500, 1_500]);
});

breaker(
  'what was counted before the window does not matter, nor does a window that is full of good requests',
  () => {
    assert.is(after(5, 5, after(9, 9), policy.windowMs - 1).state, 'open');
    assert.is(after(5, 5, after(9, 9), policy.windowMs).state, 'closed');
    assert.is(after(10, 10, after(1_000_000, 1), 1).state, 'open');
  },
);

breaker('while it is not closed nothing is counted', () => {
  assert.is(after(50, 0, open, 10), open);
  assert.is(after(50, 50, open, 10), open);
});

breaker(
  'one probe is let through when its time has come, and another one when nothing was heard of it',
  () => {
    assert.is(grantProbe(after(1, 1), 'a', 500, 0), undefined);
    assert.is(grantProbe(open, 'a', 500, open.until_ms - 1), undefined);
    const half = grantProbe(open, 'a', 500, open.until_ms)!;
    assert.equal([half.state, half.by, half.until_ms - open.until_ms], ['half_open', 'a', 500]);
    assert.is(grantProbe(half, 'b', 500, half.until_ms - 1), undefined);
    assert.is(grantProbe(half, 'b', 500, half.until_ms)?.by, 'b');
  },
);

breaker(
  'each failed probe doubles the time until the next, up to the most, and it is open since it first opened',
  () => {
    let record: BreakerRecord = open;
    const waits: number[] = [];
    for (let n = 0; n < 6; n++) {
      const nowMs = record.until_ms;
      record = openBreaker(grantProbe(record, 'a', 500, nowMs)!, policy, nowMs);
      waits.push(record.until_ms - nowMs);
      assert.equal([record.state, record.since_ms, record.by], ['open', 0, undefined]);
    }
    assert.equal(waits, [2_000, 4_000, 8_000, 8_000, 8_000, 8_000]);
  },
);

breaker(
  'a good probe restarts the count; a breaker that opens again soon stays open for longer',
  () => {
    const half = grantProbe(open, 'a', 500, 1_000)!;
    const again = closeBreaker(half, policy, 1_100);
    assert.equal(
      [again.state, again.requests, again.failures, again.since_ms, again.by],
      ['closed', 0, 0, 1_100, undefined],
    );
    const soon = after(10, 10, again, 1_200);
    assert.equal([soon.state, soon.until_ms - 1_200], ['open', 2_000]);
    const late = after(10, 10, again, again.forget_ms);
    assert.equal([late.state, late.until_ms - again.forget_ms], ['open', 1_000]);
  },
);

breaker('a record is kept while it counts or remembers a trip', () => {
  const counting = after(1, 1);
  assert.equal([isSpent(counting, 0), isSpent(counting, policy.windowMs)], [false, true]);
  assert.not.ok(isSpent(open, 1e9));
  const again = closeBreaker(open, policy, 1_000);
  assert.equal(
    [isSpent(again, again.forget_ms - 1), isSpent(again, again.forget_ms)],
    [false, true],
  );
});

breaker.run();
