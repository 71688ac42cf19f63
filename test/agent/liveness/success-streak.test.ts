import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SuccessStreak } from '#agent/liveness/success-streak';

const successStreak = suite('agent/liveness/success-streak');

const startMs = Date.parse('2026-01-01T00:00:00Z');

/** Attempts at intervals of one second. */
function attempts(
  count: number,
  {
    status = 'retry',
    from = 0,
    endpoints = 1,
  }: { status?: 'retry' | 'success'; from?: number; endpoints?: number } = {},
) {
  return Array.from({ length: count }, (_, k) => ({
    status,
    endpointId: `e${k % endpoints}`,
    requestedAtMs: startMs + (from + k) * 1_000,
    durationMs: 100,
  }));
}

successStreak('nothing is said of a few failures, or of many at once', () => {
  const few = new SuccessStreak();
  few.recorded(attempts(19));
  assert.is(few.outage(startMs + 20_000), null);
  const atOnce = new SuccessStreak();
  atOnce.recorded(attempts(9).flatMap((it) => [it, it, it]));
  assert.is(atOnce.outage(startMs + 9_000), null);
});

successStreak('when all attempts fail for a while it tells since the first of them', () => {
  const it = new SuccessStreak();
  it.recorded(attempts(5, { status: 'success' }));
  it.recorded(attempts(20, { from: 5, endpoints: 3 }));
  const outage = it.outage(startMs + 30_000);
  assert.is(outage?.since.toISOString(), '2026-01-01T00:00:05.000Z');
  assert.match(outage?.reason ?? '', 'every attempt, to 3 endpoints, has failed');
});

successStreak('one that succeeds ends it', () => {
  const it = new SuccessStreak();
  it.recorded(attempts(30));
  assert.match(it.outage(startMs + 30_000)?.reason ?? '', 'to one endpoint,');
  it.recorded(attempts(1, { status: 'success', from: 30 }));
  assert.is(it.outage(startMs + 31_000), null);
});

successStreak('when nobody has tried for long, it is not known any more', () => {
  const it = new SuccessStreak();
  it.recorded(attempts(30));
  assert.ok(it.outage(startMs + 900_000));
  assert.is(it.outage(startMs + 931_000), null);
});

successStreak('thousands of endpoints are counted up to a number', () => {
  const it = new SuccessStreak();
  it.recorded(attempts(5_000, { endpoints: 5_000 }));
  assert.match(it.outage(startMs + 5_000_000)?.reason ?? '', 'to 1000 or more endpoints,');
});

successStreak.run();
