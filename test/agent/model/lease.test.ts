import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { AgentLease } from '#agent/model/lease';
import { until } from '../../support/until.js';

const lease = suite('agent/model/lease');

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
  const it = new AgentLease(50);
  assert.not(it.isHeld);
  const renewed = it.begin();
  assert.not(it.isHeld, 'the statement is on its way');
  renewed();
  assert.ok(it.isHeld);
  await until('its end', () => !it.isHeld);
});

lease('its time counts from when the statement was sent, not from the answer', async () => {
  const it = new AgentLease(20);
  const renewed = it.begin();
  const sentAtMs = performance.now();
  await until('the answer to be late', () => performance.now() - sentAtMs > 25);
  renewed();
  assert.not(it.isHeld);
});

lease(
  'a machine that slept is noticed by the clock of the wall, and so is a clock that is set, forward or back',
  () =>
    withWall((set) => {
      const it = new AgentLease(60_000);
      it.begin()();
      set(61_000);
      assert.not(it.isHeld);
      it.begin()();
      assert.ok(it.isHeld);
      set(-120_000);
      assert.not(it.isHeld, 'the time is not known');
      it.begin()();
      set(400);
      assert.ok(it.isHeld, 'what NTP slews is no step');
      set(200);
      assert.not(it.isHeld);
    }),
);

lease(
  'agents share the readers of a source in the order of their ids, and each runs at least one',
  () => {
    const shares = (workers: number, ids: readonly number[]) =>
      ids.map((id) => {
        const it = new AgentLease();
        [it.agentId, it.readers] = [id, ids];
        return it.shareOf(workers);
      });
    assert.equal(shares(3, [7]), [3]);
    assert.equal(shares(3, [7, 9]), [2, 1]);
    assert.equal(shares(8, [2, 5, 11]), [3, 3, 2]);
    assert.equal(shares(6, [2, 5, 11]), [2, 2, 2]);
    assert.equal(shares(2, [2, 5, 11]), [1, 1, 1], 'those beyond are on standby');
    assert.equal(shares(1, [2, 5, 11]), [1, 1, 1]);
    const entering = new AgentLease();
    [entering.agentId, entering.readers] = [12, [2, 5]];
    assert.is(
      entering.shareOf(4),
      1,
      'an agent counts itself, also when it was not there at the last heartbeat',
    );
  },
);

lease.run();
