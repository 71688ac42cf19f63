import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LoopShares } from '#core/process/loop-shares';
import { until } from '../../support/until.js';

const shares = suite('core/process/loop-shares');

const compute = (ms: number) => () => {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs;);
};

shares('a project that is alone has the whole event loop', () => {
  const it = new LoopShares(150);
  for (let n = 0; n < 5; n++) it.run('one', compute(5));
  assert.not(it.isOver('one'));
});

shares(
  'beside another, one that used more than its share waits, and the other does not',
  async () => {
    const it = new LoopShares(150);
    it.run('other', compute(0.1));
    it.run('one', compute(15));
    assert.ok(it.isOver('one'));
    assert.not(it.isOver('other'));
    await until('the share to be paid back', () => !it.isOver('one'));
  },
);

shares('limits.event_loop_ms of 0: none waits', () => {
  const it = new LoopShares(0);
  it.run('other', compute(0.1));
  it.run('one', compute(15));
  assert.not(it.isOver('one'));
});

shares('work of which nothing is returned is counted too: it may throw', () => {
  const it = new LoopShares(150);
  it.run('other', compute(0.1));
  assert.throws(
    () =>
      it.run('one', () => {
        compute(15)();
        throw new Error('a defect');
      }),
    'a defect',
  );
  assert.ok(it.isOver('one'));
});

shares('work in slices waits for its share between them, and gives its result', async () => {
  const it = new LoopShares(150);
  it.run('other', compute(0.1));
  const neighbour = setInterval(() => it.run('other', compute(0.1)), 20);
  const startedAtMs = performance.now();
  function* steps() {
    for (let n = 0; n < 20; n++) {
      compute(1)();
      yield;
    }
    return 'done';
  }
  assert.is(await it.runInSlices('one', steps()), 'done');
  clearInterval(neighbour);
  const took = performance.now() - startedAtMs;
  assert.ok(took > 80, `20 ms of work took ${took} ms`);
});

shares.run();
