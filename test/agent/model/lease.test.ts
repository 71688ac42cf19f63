import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Lease } from '#agent/model/lease';
import { until } from '../../support/until.js';

const lease = suite('agent/model/lease');

/** Runs a test with a clock of the wall that it sets. */
function withWall(test: (set: (ms: number) => void) => void): void {
  const { now } = Date;
  let wallMs = now();
  Date.now = () => wallMs;
  try {
    test((ms) => (wallMs += ms));
  } finally {
    Date.now = now;
  }
}

lease('it does not hold before it was granted, and holds for its time after that', async () => {
  const it = new Lease(50);
  assert.not(it.holds);
  const renewed = it.begin();
  assert.not(it.holds, 'the statement is on its way');
  renewed();
  assert.ok(it.holds);
  await until('its end', () => !it.holds);
});

lease('its time counts from when the statement was sent, not from the answer', async () => {
  const it = new Lease(20);
  const renewed = it.begin();
  const sentAtMs = performance.now();
  await until('the answer to be late', () => performance.now() - sentAtMs > 25);
  renewed();
  assert.not(it.holds);
});

lease('a machine that slept is noticed by the clock of the wall, and a clock that is set back prolongs nothing', () =>
  withWall((set) => {
    const it = new Lease(60_000);
    it.begin()();
    set(61_000);
    assert.not(it.holds);
    set(-120_000);
    assert.ok(it.holds, 'the monotonic clock counts');
  }),
);

lease.run();
