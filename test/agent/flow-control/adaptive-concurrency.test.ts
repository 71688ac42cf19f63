import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { AdaptiveConcurrency } from '#agent/flow-control/adaptive-concurrency';

const adaptive = suite('agent/flow-control/adaptive-concurrency');

const MOST = 50;

/** An endpoint that works on `capacity` requests at once, each for 100 ms; others wait. */
function run(
  concurrency: AdaptiveConcurrency,
  { seconds, latencyMs }: { seconds: number; latencyMs: (sending: number) => number },
  fromMs = 0,
): { limit: number; untilMs: number } {
  let nowMs = fromMs;
  while (nowMs < fromMs + seconds * 1000) {
    const sending = concurrency.limitOf('e', MOST, nowMs);
    const durationMs = latencyMs(sending);
    nowMs += durationMs;
    for (let k = 0; k < sending; k++)
      concurrency.answered('e', MOST, { durationMs, isOverloaded: false, sending }, nowMs);
  }
  return { limit: concurrency.limitOf('e', MOST, nowMs), untilMs: nowMs };
}

adaptive('an endpoint gets its setting until its answers say otherwise', () => {
  const concurrency = new AdaptiveConcurrency();
  assert.is(concurrency.limitOf('e', MOST, 0), MOST);
  assert.is(run(concurrency, { seconds: 10, latencyMs: () => 20 }).limit, MOST);
  assert.equal(concurrency.lowered(), []);
});

adaptive('a refusal halves it, down to one, and good answers raise it one by one', () => {
  const concurrency = new AdaptiveConcurrency();
  let nowMs = 0;
  const refuse = () => {
    nowMs += 1_000;
    const answer = { durationMs: 5, isOverloaded: true, sending: 1 };
    concurrency.answered('e', MOST, answer, nowMs);
  };
  refuse();
  assert.is(concurrency.limitOf('e', MOST, nowMs), 50, 'the first round is not over');
  refuse();
  assert.is(concurrency.limitOf('e', MOST, nowMs), 25);
  for (let k = 0; k < 10; k++) refuse();
  assert.is(concurrency.limitOf('e', MOST, nowMs), 1);
  assert.equal(concurrency.lowered(), [{ endpointId: 'e', limit: 1 }]);
  const { limit, untilMs } = run(concurrency, { seconds: 1, latencyMs: () => 10 }, nowMs);
  assert.ok(limit > 5 && limit < 15, String(limit));
  assert.is(run(concurrency, { seconds: 10, latencyMs: () => 10 }, untilMs).limit, MOST);
});

adaptive('an endpoint that refused most requests gets as many as it accepted', () => {
  const concurrency = new AdaptiveConcurrency();
  const answer = (isOverloaded: boolean, sending: number, nowMs: number) =>
    concurrency.answered('e', MOST, { durationMs: 20, isOverloaded, sending }, nowMs);
  for (let sending = MOST; sending > 0; sending--) answer(sending > 5, sending, 0);
  assert.is(concurrency.limitOf('e', MOST, 50), MOST, 'the first round is not over');
  assert.is(concurrency.limitOf('e', MOST, 200), 5, 'before another answer');
});

adaptive('an endpoint that slows down under load gets fewer requests at once', () => {
  const concurrency = new AdaptiveConcurrency();
  // Above 10 requests at once, each further one delays all.
  const latencyMs = (sending: number) => 100 + Math.max(0, sending - 10) ** 2 * 5;
  const calm = run(concurrency, { seconds: 5, latencyMs: () => 100 });
  const { limit } = run(concurrency, { seconds: 60, latencyMs }, calm.untilMs);
  assert.ok(limit < MOST, String(limit));
});

adaptive('a small change of the latency is no reason, and idle endpoints are forgotten', () => {
  const concurrency = new AdaptiveConcurrency();
  const { untilMs } = run(concurrency, { seconds: 5, latencyMs: () => 5 });
  const later = run(concurrency, { seconds: 5, latencyMs: () => 45 }, untilMs);
  assert.is(later.limit, MOST);
  concurrency.answered('e', MOST, { durationMs: 1, isOverloaded: true, sending: 1 }, later.untilMs);
  concurrency.forget(later.untilMs + 3_600_000);
  assert.equal(concurrency.lowered(), []);
});

adaptive.run();
