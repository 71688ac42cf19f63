import { FunctionQueues, type QueuedCall } from '#sandbox/parent/function-queues';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('sandbox/parent/function-queues');

function call(payload: string, text = 'text'): QueuedCall {
  return { text, payload, deaths: 0, settle: () => undefined, fail: () => undefined };
}

function calls(count: number, payload = '1'): QueuedCall[] {
  return Array.from({ length: count }, () => call(payload));
}

/** Queues of functions that have completed a call and can therefore share a process. */
function queuesOf(processes: number, ...tried: string[]): FunctionQueues {
  const queues = new FunctionQueues(processes);
  for (const key of tried) queues.answered(key);
  return queues;
}

test('calls leave in the order in which they came, a bounded number at a time', () => {
  const queues = queuesOf(4, 'a');
  const all = calls(150);
  queues.add('a', all);
  const taken = [queues.take(), queues.take(), queues.take()].map((part) => part!.calls);
  assert.ok(taken.every((part) => part.length <= 64));
  assert.equal(taken.flat().length, 150);
  assert.ok(taken.flat().every((each, index) => each === all[index]));
});

test('a chunk is bounded in size too, but a large payload goes alone', () => {
  const queues = queuesOf(4, 'a', 'b');
  queues.add('a', calls(4, 'x'.repeat(50_000)));
  assert.is(queues.take()!.calls.length, 2);
  const other = queuesOf(4, 'a', 'b');
  other.add('b', [call('x'.repeat(10_000_000)), call('1')]);
  assert.is(other.take()!.calls.length, 1);
});

test('clearing takes everything that waits, in its order, however much it is', () => {
  const queues = queuesOf(4, 'a', 'b');
  const [many, few] = [calls(300_000), calls(2)];
  queues.add('a', many);
  queues.add('b', few);
  const cleared = queues.clear();
  assert.is(cleared.length, many.length + few.length);
  assert.ok(cleared.every((each, index) => each === (many[index] ?? few[index - many.length])));
  assert.is(queues.take(), undefined);
});

test('as many processes are wanted as could work at what waits', () => {
  const queues = queuesOf(4, 'a', 'b');
  assert.is(queues.wanted, 0);
  queues.add('a', calls(1));
  assert.is(queues.wanted, 1);
  queues.add('a', calls(1000));
  assert.is(queues.wanted, 3, 'a function never has all');
  queues.add('b', calls(65));
  assert.is(queues.wanted, 5);
  const taken = [queues.take()!, queues.take()!];
  assert.is(queues.wanted, 3);
  for (const { key } of taken) queues.suspect(key, 10);
  for (const { key, calls: unanswered } of taken) queues.release(key, unanswered);
  assert.is(queues.wanted, 1, 'those that had a process killed have one between them');
  queues.take();
  assert.is(queues.wanted, 0);
});

test('functions take turns', () => {
  const queues = queuesOf(1, 'a', 'b', 'c');
  queues.add('a', calls(200));
  queues.add('b', calls(200));
  queues.add('c', calls(1));
  const order = Array.from({ length: 5 }, () => {
    const { key } = queues.take()!;
    queues.release(key, []);
    return key;
  });
  assert.equal(order, ['a', 'b', 'c', 'a', 'b']);
});

test('a function never has all processes, when there are several', () => {
  const queues = queuesOf(3, 'a', 'b');
  queues.add('a', calls(1000));
  assert.ok(queues.take());
  assert.ok(queues.take());
  assert.is(queues.take(), undefined);
  queues.add('b', calls(1));
  assert.is(queues.take()?.key, 'b');
});

test('all functions that had a process killed share one', () => {
  const queues = queuesOf(4, 'a', 'b', 'c', 'good');
  for (const key of ['a', 'b', 'c']) {
    queues.suspect(key, 10);
    queues.add(key, calls(500));
  }
  assert.is(queues.take()?.key, 'a');
  assert.is(queues.take(), undefined);
  queues.add('good', calls(1000));
  assert.is(queues.take()?.key, 'good');
  queues.release('a', []);
  assert.is(queues.take()?.key, 'b', 'they take turns among themselves');
});

test('a function runs apart until it has answered a call: one call at a time, and only one such function', () => {
  const queues = queuesOf(4, 'good');
  queues.add('good', calls(500));
  queues.add('a', calls(500));
  queues.add('b', calls(500));
  assert.is(queues.wanted, 4, 'three for the good one, one for all new ones');
  const taken = () => {
    const { key, calls: some, apart } = queues.take()!;
    return [key, some.length, apart];
  };
  assert.equal(
    [taken(), taken()],
    [
      ['good', 64, false],
      ['a', 1, true],
    ],
  );
  assert.equal(
    [taken(), taken()],
    [
      ['good', 64, false],
      ['good', 64, false],
    ],
  );
  assert.is(queues.take(), undefined, 'b waits for a');
  queues.answered('a');
  queues.release('a', []);
  assert.equal(
    [taken(), taken(), taken()],
    [
      ['b', 1, true],
      ['a', 64, false],
      ['a', 64, false],
    ],
  );
});

test('new functions run before those that were interrupted or suspected', () => {
  const queues = queuesOf(2);
  assert.ok(queues.areAllNew);
  queues.suspect('late', 10);
  for (const key of ['late', 'loop', 'new']) queues.add(key, calls(5));
  const taken = () => {
    const { key } = queues.take()!;
    queues.release(key, []);
    return key;
  };
  assert.is(queues.take()?.key, 'loop');
  assert.ok(queues.newWaits(), 'the other one does');
  queues.interrupted('loop', 100);
  queues.release('loop', []);
  assert.is(taken(), 'new');
  queues.answered('new');
  assert.not.ok(queues.newWaits());
  assert.not.ok(queues.areAllNew);
  queues.drop('new');
  assert.equal([taken(), taken()].sort(), ['late', 'loop']);
  queues.suspect('new', 10);
  queues.add('new', calls(2));
  assert.is(queues.take()?.apart, true, 'one that overran is tried again');
});

test('a function that had a process killed has its calls made one by one', () => {
  const queues = queuesOf(4, 'a');
  queues.suspect('a', 10);
  queues.add('a', calls(3));
  const sizes: number[] = [];
  for (let taken = queues.take(); taken; taken = queues.take()) {
    sizes.push(taken.calls.length);
    queues.answered('a');
    queues.release('a', []);
  }
  assert.equal(sizes, [1, 1, 1]);
});

test('a project whose functions overrun more than once within a minute rests: good functions go on, and others do not wait', () => {
  const queues = queuesOf(4, 'good', 'a', 'other');
  const overrun = (key: string, tookMs: number) => {
    queues.add(key, calls(2), 'project');
    queues.take();
    const rest = queues.suspect(key, tookMs);
    queues.release(key, []);
    return rest;
  };
  assert.is(overrun('a', 500), undefined);
  queues.drop('a');
  queues.answered('renewed');
  const rest = overrun('renewed', 500);
  assert.is(rest?.ms, 1300, 'although it is another function, and had answered');
  assert.is(queues.take(), undefined);
  queues.add('new', calls(1), 'project');
  assert.is(queues.take(), undefined, 'nor does one that is new');
  assert.is(queues.wanted, 0, 'nobody is started for it');
  assert.not.ok(queues.newWaits());
  queues.add('good', calls(1), 'project');
  queues.add('other', calls(1));
  assert.equal([queues.take()?.key, queues.take()?.key].sort(), ['good', 'other']);
  rest?.end();
  assert.is(queues.wanted, 1);
  assert.is(queues.take()?.key, 'new');
  queues.drop('renewed');
  assert.is(overrun('a', 3_600_000)?.ms, 60_000, 'no longer than a minute');
});

test('a project that shares the processes, or had one killed lately, never has them all', () => {
  const keys = ['a', 'b', 'c', 'other'];
  const projectOf = (key: string) => (key === 'other' ? key : 'project');
  const taken = (queues: FunctionQueues) => {
    const { wanted } = queues;
    return [wanted, ...keys.flatMap(() => queues.take()?.key ?? [])];
  };
  const alone = queuesOf(3, ...keys);
  for (const key of ['a', 'b', 'c']) alone.add(key, calls(1), projectOf(key));
  assert.equal(taken(alone), [3, 'a', 'b', 'c'], 'nobody else needs them');
  const shared = queuesOf(3, ...keys);
  for (const key of ['a', 'b', 'c', 'other']) shared.add(key, calls(1), projectOf(key));
  assert.equal(taken(shared), [3, 'a', 'other', 'b']);
  const suspected = queuesOf(3, ...keys, 'late');
  suspected.add('late', [], 'project');
  suspected.suspect('late', 10);
  for (const key of ['a', 'b', 'c']) suspected.add(key, calls(1), projectOf(key));
  assert.equal(taken(suspected), [2, 'a', 'b']);
});

test('projects take turns, however many functions each has', () => {
  const queues = queuesOf(1, 'a', 'b', 'c', 'other');
  for (const key of ['a', 'b', 'c']) queues.add(key, calls(200), 'project');
  queues.add('other', calls(200));
  const order = Array.from({ length: 6 }, () => {
    const { key } = queues.take()!;
    queues.release(key, []);
    return key;
  });
  assert.equal(order, ['a', 'other', 'b', 'other', 'c', 'other']);
});

test('a new function makes room for one of another project only', () => {
  const queues = queuesOf(2);
  queues.add('a', calls(1), 'project');
  queues.take();
  queues.add('b', calls(1), 'project');
  assert.not.ok(queues.newWaits('a'));
  queues.add('other', calls(1));
  assert.ok(queues.newWaits('a'));
  assert.is(queues.interrupted('a', 100), undefined);
  assert.is(queues.interrupted('a', 100)?.ms, 500, 'which costs a process too');
});

test('a chunk of slow calls is small', () => {
  const queues = queuesOf(2);
  const size = (calls: number, tookMs: number) => {
    queues.answered('a', calls, tookMs);
    const taken = queues.take()!.calls;
    queues.release('a', taken);
    return taken.length;
  };
  queues.add('a', calls(100));
  assert.equal(
    [size(1, 0.2), size(64, 20), size(64, 640), size(5, 500), size(1, 900)],
    [64, 64, 5, 1, 1],
  );
});

test('what waits of one function can be dropped, and the others stay', () => {
  const queues = queuesOf(2, 'a', 'b');
  queues.add('a', calls(3));
  queues.add('b', calls(2));
  assert.is(queues.drop('a').length, 3);
  assert.equal(queues.drop('none'), []);
  assert.is(queues.take()?.key, 'b');
});

test('calls that come back are the first again', () => {
  const queues = queuesOf(1, 'a');
  const all = calls(100);
  queues.add('a', all);
  const { calls: taken } = queues.take()!;
  queues.release('a', taken.slice(10));
  assert.is(queues.take()!.calls[0], all[10]);
});

test('a call that saw a process die without a reason goes alone', () => {
  const queues = queuesOf(2, 'a');
  const all = calls(5);
  all[2]!.deaths = 1;
  queues.add('a', all);
  const sizes: number[] = [];
  for (let taken = queues.take(); taken; taken = queues.take()) {
    sizes.push(taken.calls.length);
    queues.release('a', []);
  }
  assert.equal(sizes, [2, 1, 2]);
});

test('calls of two texts of a function are not mixed', () => {
  const queues = queuesOf(2, 'a');
  queues.add('a', [call('1'), call('2', 'other text'), call('3', 'other text'), call('4')]);
  const sizes: number[] = [];
  for (let taken = queues.take(); taken; taken = queues.take()) {
    sizes.push(taken.calls.length);
    queues.release('a', []);
  }
  assert.equal(sizes, [1, 2, 1]);
});

test('what is cleared is gone', () => {
  const queues = queuesOf(2, 'a', 'b');
  queues.add('a', calls(3));
  queues.add('b', calls(2));
  assert.is(queues.clear().length, 5);
  assert.is(queues.take(), undefined);
});

test.run();
