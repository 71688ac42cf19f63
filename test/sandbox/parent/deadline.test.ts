import { cpuTimeMs } from '#sandbox/parent/cpu-share';
import { STUCK_MS, watchDeadline } from '#sandbox/parent/deadline';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('sandbox/parent/deadline');

const running = { chunk: 7, call: 3 };

test('a call is over its deadline when it was seen running for that long', () => {
  const watch = watchDeadline(1000);
  assert.is(watch.everyMs, 100);
  watch.look(running, 100);
  for (let seenMs = 100; seenMs < 1000; seenMs += 100)
    assert.equal(
      watch.look(running, 100),
      { state: seenMs < 500 ? 'fine' : 'long' },
      `after ${seenMs} ms`,
    );
  assert.equal(watch.look(running, 100), { state: 'overran', call: 3 });
});

test('every new call, of the same chunk or of another, has the whole deadline', () => {
  const watch = watchDeadline(1000);
  for (let step = 0; step < 100; step += 1)
    assert.is.not(watch.look({ chunk: 7 + (step >> 4), call: step >> 2 }, 200).state, 'overran');
});

test('time in which nobody looked is not held against a call', () => {
  const watch = watchDeadline(1000);
  watch.look(running, 100);
  assert.equal(watch.look(running, 3_600_000), { state: 'fine' }, 'the machine slept for an hour');
  for (let step = 0; step < 7; step += 1) assert.is.not(watch.look(running, 100).state, 'overran');
  assert.equal(watch.look(running, 100), { state: 'overran', call: 3 });
});

test('a call that the machine hardly runs has some time more, and is told from one that used its time', () => {
  const after = (cpuShare: number) => {
    let cpu = 5_000;
    const watch = watchDeadline(1000, () => cpu);
    watch.look(running, 100);
    for (let seenMs = 100; ; seenMs += 100) {
      cpu += cpuShare * 100;
      const look = watch.look(running, 100);
      if (look.state === 'overran') return { seenMs, ...look };
    }
  };
  assert.equal(after(1), { seenMs: 1000, state: 'overran', call: 3 });
  assert.equal(after(0.5), { seenMs: 1000, state: 'overran', call: 3 });
  assert.equal(
    after(0.4),
    { seenMs: 1300, state: 'overran', call: 3 },
    'it has had half of its deadline by then',
  );
  assert.equal(after(0.2), { seenMs: 1700, state: 'overran', call: 3 });
  const starved = after(0.05);
  assert.equal(starved, { seenMs: 1700, state: 'overran', call: 3, starvedMs: 85 });
  assert.ok(starved.seenMs < 2 * 1000, 'never twice its deadline');
});

test('the time for which a process was held does not count, and what it then had is not too little', () => {
  const after = (cpuShare: number) => {
    let cpu = 0;
    const watch = watchDeadline(1000, () => cpu);
    watch.look(running, 100);
    for (let seenMs = 100; ; seenMs += 100) {
      cpu += cpuShare * 60;
      const look = watch.look(running, 100, 40);
      if (look.state === 'overran') return { seenMs, ...look };
    }
  };
  assert.equal(after(1), { seenMs: 1700, state: 'overran', call: 3 });
  assert.equal(
    after(0.4),
    { seenMs: 1700, state: 'overran', call: 3 },
    'no more beside that: it has twice its deadline at most',
  );
  assert.equal(after(0.05), { seenMs: 1700, state: 'overran', call: 3, starvedMs: 51 });
});

test('the processor time of a process is told where the system tells it', () => {
  const before = cpuTimeMs(process.pid);
  const end = Date.now() + 100;
  while (Date.now() < end);
  const after = cpuTimeMs(process.pid);
  if (process.platform === 'linux')
    assert.ok(
      before !== undefined && after !== undefined && after > before,
      `${before} ms, ${after} ms`,
    );
  else assert.is(before, undefined);
  assert.is(cpuTimeMs(2 ** 30), undefined, 'of no process');
});

test('a process that does not get on between calls is given up after a while', () => {
  const watch = watchDeadline(1000);
  const idle = { chunk: 0, call: undefined };
  let lookedMs = 0;
  while (watch.look(idle, 100).state === 'fine') lookedMs += 100;
  assert.is(lookedMs, STUCK_MS - 100);
});

test('a very short deadline is not looked at in a busy loop, a long one not too seldom', () => {
  assert.is(watchDeadline(10).everyMs, 5);
  assert.is(watchDeadline(3_600_000).everyMs, 200);
});

test.run();
