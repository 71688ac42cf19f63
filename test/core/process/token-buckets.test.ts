import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TokenBuckets, workOfEvents } from '#core/process/token-buckets';

const buckets = suite('core/process/token-buckets');

buckets(
  'work has its turn when what was counted before it is within the share, and no other project waits',
  () => {
    const it = new TokenBuckets(100, 10);
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

buckets('what was counted and not done is given back, and no more', () => {
  const it = new TokenBuckets(100, 10);
  it.add('one', 50);
  it.add('one', -50);
  assert.not(it.isOver('one'));
  it.add('one', -50);
  it.add('one', 50);
  assert.ok(it.isOver('one'));
});

buckets('without a share nothing waits', () => {
  const it = new TokenBuckets(0);
  assert.is(it.add('one', 1e9), 0);
  assert.not(it.isOver('one'));
});

buckets('an event counts again for each 16 KB', () => {
  assert.equal(
    [workOfEvents(1, 16_383), workOfEvents(1, 16_384), workOfEvents(3, 40_000)],
    [1, 2, 5],
  );
});

buckets('tokens are granted whole, up to what is left, and come back', async () => {
  const it = new TokenBuckets();
  const rate = { perSecond: 100, burst: 10 };
  assert.equal(it.take('one', 7, rate), { granted: 7, left: 3, waitMs: 0 });
  assert.equal(it.take('one', 0, rate).left, 3);
  assert.equal(it.take('one', 30, rate), { granted: 3, left: 0, waitMs: 0 });
  const { granted, waitMs } = it.take('one', 1, rate);
  assert.ok(granted === 1 || (waitMs > 0 && waitMs <= 10), `${granted}, ${waitMs} ms`);
  assert.is(it.take('other', 1, rate).granted, 1);
  const from = performance.now();
  while (performance.now() < from + 25);
  assert.ok(it.take('one', 30, rate).granted >= 2);
});

buckets(
  'beyond a hundred thousand names, the one that was taken from least lately is forgotten',
  () => {
    const it = new TokenBuckets();
    const rate = { perSecond: 1 / 3600, burst: 1 };
    for (let n = 0; n < 100_000; n++) it.take(`${n}`, 1, rate);
    assert.is(it.take('0', 1, rate).granted, 0);
    it.take('new', 1, rate);
    assert.is(it.take('0', 1, rate).granted, 0, 'it was used since');
    assert.is(it.take('1', 1, rate).granted, 1, 'it starts full again');
  },
);

buckets.run();
