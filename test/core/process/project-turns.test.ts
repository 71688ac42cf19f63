import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ProjectTurns } from '#core/process/project-turns';

const turns = suite('core/process/project-turns');

/** Work that ends on request, and records its start. */
function work(begun: string[], name: string) {
  const { promise, resolve, reject } = deferred();
  const run = () => {
    begun.push(name);
    return promise;
  };
  return { run, resolve, reject };
}

function deferred() {
  let resolve = (_: string) => {};
  let reject = (_: Error) => {};
  const promise = new Promise<string>((...given) => ([resolve, reject] = given));
  return { promise, resolve, reject };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

turns(
  'work of a project begins when that before has ended, also by an error, and other projects do not wait',
  async () => {
    const it = new ProjectTurns();
    const begun: string[] = [];
    const [first, second, other] = ['first', 'second', 'other'].map((name) => work(begun, name));
    const results = [it.run('p', first!.run), it.run('p', second!.run), it.run('q', other!.run)];
    await settled();
    assert.equal(begun, ['first', 'other']);
    first!.reject(new Error('a defect'));
    const error = await results[0]!.catch((it: Error) => it);
    assert.instance(error, Error);
    await settled();
    assert.equal(begun, ['first', 'other', 'second']);
    let isIdle = false;
    void it.idle().then(() => (isIdle = true));
    other!.resolve('other');
    await settled();
    assert.not(isIdle);
    second!.resolve('done');
    assert.is(await results[1], 'done');
    await settled();
    assert.ok(isIdle);
  },
);

turns('so much work of an owner runs at a time as is said', async () => {
  const it = new ProjectTurns(2);
  const [first] = [await it.take('p'), await it.take('p')];
  let begun = false;
  void it.take('p').then(() => (begun = true));
  await settled();
  assert.not(begun);
  assert.is(it.waitingOf('p'), 1);
  assert.is(it.waitingOf('q'), 0);
  first();
  await settled();
  assert.ok(begun);
});

turns.run();
