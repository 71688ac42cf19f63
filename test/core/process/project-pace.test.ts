import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ProjectPace, workOfEvents } from '#core/process/project-pace';

const pace = suite('core/process/project-pace');

pace(
  'work has its turn when what was counted before it is within the share, and no other project waits',
  () => {
    const it = new ProjectPace(100, 0.1);
    assert.is(it.add('one', 1010), 0);
    assert.ok(it.isOver('one'));
    const waitMs = it.add('one', 100);
    assert.ok(waitMs > 9_900 && waitMs <= 10_000, `${waitMs} ms`);
    assert.is(it.add('other', 1), 0);
    assert.not(it.isOver('other'));
    assert.equal(it.over, ['one']);
    assert.ok(it.waitMs('one') > 10_500 && it.waitMs('one') <= 11_000, `${it.waitMs('one')} ms`);
    assert.is(it.waitMs('other'), 0);
    it.delete('one');
    assert.not(it.isOver('one'));
  },
);

pace('what was counted and not done is given back, and no more', () => {
  const it = new ProjectPace(100, 0.1);
  it.add('one', 50);
  it.add('one', -50);
  assert.not(it.isOver('one'));
  it.add('one', -50);
  it.add('one', 50);
  assert.ok(it.isOver('one'));
});

pace('without a share nothing waits', () => {
  const it = new ProjectPace(0);
  assert.is(it.add('one', 1e9), 0);
  assert.not(it.isOver('one'));
});

pace('an event counts again for each 16 KB', () => {
  assert.equal(
    [workOfEvents(1, 16_383), workOfEvents(1, 16_384), workOfEvents(3, 40_000)],
    [1, 2, 5],
  );
});

pace.run();
