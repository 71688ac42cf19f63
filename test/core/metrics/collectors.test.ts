import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createCollectors } from '#core/metrics/collectors';

const collectors = suite('core/metrics/collectors');

function listening() {
  const warnings: object[] = [];
  return { warnings, log: { warn: (fields: object) => void warnings.push(fields) } };
}

collectors('all are called at each run, until they are removed', async () => {
  const { warnings, log } = listening();
  const it = createCollectors(log);
  const calls = { one: 0, two: 0 };
  const remove = it.add(() => void calls.one++);
  it.add(() => void calls.two++);
  await it.run();
  assert.equal(calls, { one: 1, two: 1 });
  remove();
  await it.run();
  assert.equal([calls, warnings], [{ one: 1, two: 2 }, []]);
});

collectors('one that fails is logged when that begins, and the others are read all the same', async () => {
  const { warnings, log } = listening();
  const it = createCollectors(log);
  let broken = true;
  let read = 0;
  it.add(() => {
    if (broken) throw new Error('no such pool');
  });
  it.add(() => {
    throw new Error('nothing there');
  });
  it.add(() => void read++);
  await it.run();
  await it.run();
  assert.is(read, 2);
  assert.is(warnings.length, 2, 'once each');
  assert.match(String((warnings[0] as { error: Error }).error), 'no such pool');
  broken = false;
  await it.run();
  broken = true;
  await it.run();
  assert.is(warnings.length, 3, 'and again after it has worked');
});

collectors('those that take turns are waited for, all at once; one of them that fails is logged like any other', async () => {
  const { warnings, log } = listening();
  const it = createCollectors(log);
  const begun: string[] = [];
  const ended: string[] = [];
  for (const name of ['one', 'two'])
    it.add(async () => {
      begun.push(name);
      await nextTurn();
      ended.push(name);
    });
  it.add(async () => {
    await nextTurn();
    throw new Error('no such pool');
  });
  const running = it.run();
  assert.equal([begun, ended], [['one', 'two'], []]);
  await running;
  assert.equal([ended, warnings.length], [['one', 'two'], 1]);
});

collectors.run();
