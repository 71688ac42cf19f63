import { Lanes, type Call } from '#sandbox/parent/lanes';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('sandbox/parent/lanes');

function call(payload: string | undefined, text = 'text'): Call {
  return { text, payload, deaths: 0, settle: () => undefined, fail: () => undefined };
}

function calls(count: number, payload = '1'): Call[] {
  return Array.from({ length: count }, () => call(payload));
}

test('calls leave in the order in which they came, a bounded number at a time', () => {
  const lanes = new Lanes(4);
  const all = calls(150);
  lanes.add('a', all);
  const taken = [lanes.take(), lanes.take(), lanes.take()].map((part) => part!.calls);
  assert.ok(taken.every((part) => part.length <= 64));
  assert.equal(taken.flat().length, 150);
  assert.ok(taken.flat().every((each, index) => each === all[index]));
});

test('a chunk is bounded in size too, but a large payload goes alone', () => {
  const lanes = new Lanes(4);
  lanes.add('a', calls(4, 'x'.repeat(50_000)));
  assert.is(lanes.take()!.calls.length, 2);
  const other = new Lanes(4);
  other.add('b', [call('x'.repeat(10_000_000)), call('1')]);
  assert.is(other.take()!.calls.length, 1);
});

test('clearing takes everything that waits, in its order, however much it is', () => {
  const lanes = new Lanes(4);
  const [many, few] = [calls(300_000), calls(2)];
  lanes.add('a', many);
  lanes.add('b', few);
  const cleared = lanes.clear();
  assert.is(cleared.length, many.length + few.length);
  assert.ok(cleared.every((each, index) => each === (many[index] ?? few[index - many.length])));
  assert.is(lanes.take(), undefined);
});

test('as many processes are wanted as could work at what waits', () => {
  const lanes = new Lanes(4);
  assert.is(lanes.wanted, 0);
  lanes.add('a', calls(1));
  assert.is(lanes.wanted, 1);
  lanes.add('a', calls(1000));
  assert.is(lanes.wanted, 3, 'a function never has all');
  lanes.add('b', calls(65));
  assert.is(lanes.wanted, 5);
  const taken = [lanes.take()!, lanes.take()!];
  assert.is(lanes.wanted, 3);
  for (const { key } of taken) lanes.suspect(key, 10);
  for (const { key, calls: unanswered } of taken) lanes.release(key, unanswered);
  assert.is(lanes.wanted, 1, 'those that had a process killed have one between them');
  lanes.take();
  assert.is(lanes.wanted, 0);
});

test('functions take turns', () => {
  const lanes = new Lanes(1);
  lanes.add('a', calls(200));
  lanes.add('b', calls(200));
  lanes.add('c', calls(1));
  const order = Array.from({ length: 5 }, () => {
    const { key } = lanes.take()!;
    lanes.release(key, []);
    return key;
  });
  assert.equal(order, ['a', 'b', 'c', 'a', 'b']);
});

test('a function never has all processes, when there are several', () => {
  const lanes = new Lanes(3);
  lanes.add('a', calls(1000));
  assert.ok(lanes.take());
  assert.ok(lanes.take());
  assert.is(lanes.take(), undefined);
  lanes.add('b', calls(1));
  assert.is(lanes.take()?.key, 'b');
});

test('all functions that had a process killed share one', () => {
  const lanes = new Lanes(4);
  for (const key of ['a', 'b', 'c']) {
    lanes.suspect(key, 10);
    lanes.add(key, calls(500));
  }
  assert.is(lanes.take()?.key, 'a');
  assert.is(lanes.take(), undefined);
  lanes.add('good', calls(1000));
  assert.is(lanes.take()?.key, 'good');
  lanes.release('a', []);
  assert.is(lanes.take()?.key, 'b', 'they take turns among themselves');
});

test('a function that had a process killed has its calls made one by one', () => {
  const lanes = new Lanes(4);
  lanes.suspect('a', 10);
  lanes.add('a', calls(3));
  const sizes: number[] = [];
  for (let taken = lanes.take(); taken; taken = lanes.take()) {
    sizes.push(taken.calls.length);
    lanes.release('a', []);
  }
  assert.equal(sizes, [1, 1, 1]);
});

test('a function that overruns more than once in a row rests; one that answers in between does not', () => {
  const lanes = new Lanes(4);
  lanes.add('a', calls(10));
  lanes.add('b', calls(10));
  const overrun = (key: string, tookMs: number) => {
    lanes.release(key, []);
    return lanes.suspect(key, tookMs);
  };
  assert.is(lanes.take()?.key, 'a');
  assert.is(overrun('a', 500), 0);
  lanes.take();
  lanes.add('a', calls(10));
  lanes.add('b', calls(10));
  assert.is(overrun('b', 500), 0);
  assert.is(lanes.take()?.key, 'a');
  assert.is(overrun('a', 500), 1300);
  assert.is(lanes.take()?.key, 'b', 'the others do not wait for it');
  lanes.answered('b');
  assert.is(overrun('b', 500), 0);
  lanes.drop('b');
  assert.is(lanes.take(), undefined);
  assert.is(lanes.wanted, 0, 'nobody is started for it');
  lanes.rested('a');
  assert.is(lanes.wanted, 1);
  assert.is(lanes.take()?.key, 'a');
  assert.is(overrun('a', 3_600_000), 60_000, 'no longer than a minute');
});

test('what waits of one function can be dropped, and the others stay', () => {
  const lanes = new Lanes(2);
  lanes.add('a', calls(3));
  lanes.add('b', calls(2));
  assert.is(lanes.drop('a').length, 3);
  assert.equal(lanes.drop('none'), []);
  assert.is(lanes.take()?.key, 'b');
});

test('calls that come back are the first again', () => {
  const lanes = new Lanes(1);
  const all = calls(100);
  lanes.add('a', all);
  const { calls: taken } = lanes.take()!;
  lanes.release('a', taken.slice(10));
  assert.is(lanes.take()!.calls[0], all[10]);
});

test('a call that saw a process die without a reason goes alone', () => {
  const lanes = new Lanes(2);
  const all = calls(5);
  all[2]!.deaths = 1;
  lanes.add('a', all);
  const sizes: number[] = [];
  for (let taken = lanes.take(); taken; taken = lanes.take()) {
    sizes.push(taken.calls.length);
    lanes.release('a', []);
  }
  assert.equal(sizes, [2, 1, 2]);
});

test('checks and other texts are not mixed with payloads', () => {
  const lanes = new Lanes(2);
  lanes.add('a', [call('1'), call(undefined), call('2'), call('3', 'other text'), call('4', 'other text')]);
  const sizes: number[] = [];
  for (let taken = lanes.take(); taken; taken = lanes.take()) {
    sizes.push(taken.calls.length);
    lanes.release('a', []);
  }
  assert.equal(sizes, [1, 1, 1, 2]);
});

test('what is cleared is gone', () => {
  const lanes = new Lanes(2);
  lanes.add('a', calls(3));
  lanes.add('b', calls(2));
  assert.is(lanes.clear().length, 5);
  assert.is(lanes.take(), undefined);
});

test.run();
