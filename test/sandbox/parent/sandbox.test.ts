import { setTimeout as sleep } from 'node:timers/promises';
import {
  Sandbox,
  SandboxError,
  type TransformFunction,
  type TransformResult,
} from '@gateway/sandbox';
import { STUCK_MS } from '#sandbox/parent/deadline';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until, within } from '../../support/until.js';
import { guestProcesses } from '../processes.js';

const test = suite('sandbox/parent/sandbox');
const open: Sandbox[] = [];

function sandbox(limits: ConstructorParameters<typeof Sandbox>[0] = {}): Sandbox {
  const made = new Sandbox(limits);
  open.push(made);
  return made;
}

function fn(text: string): TransformFunction {
  return { key: text, text };
}

function json(result: TransformResult | undefined): unknown {
  return result?.kind === 'object' ? JSON.parse(result.json) : result;
}

const echo = fn('function transform(payload) { return { got: payload }; }');
const spinOnTrue = fn(
  'function transform(payload) { while (payload === true); return { got: payload }; }',
);

test.after.each(async () => {
  for (const each of open.splice(0)) await within(each.close(), 10_000, 'a sandbox to close');
});

test('answers come in the order of the payloads, however many there are', async () => {
  const payloads = Array.from({ length: 1000 }, (_, index) => `{"number":${index}}`);
  const results = await within(sandbox().run(echo, payloads), 30_000, '1000 answers');
  assert.equal(
    results.map(json),
    payloads.map((payload) => ({ got: JSON.parse(payload) })),
  );
});

test('no payloads give no results, and start no process', async () => {
  assert.equal(await sandbox().run(echo, []), []);
  assert.equal(await guestProcesses(), []);
});

test('a payload that was no JSON arrives as the string that the caller made of it', async () => {
  const [result] = await sandbox().run(echo, [JSON.stringify('a=1&b=ü\0')]);
  assert.equal(json(result), { got: 'a=1&b=ü\0' });
});

test('an array gives one JSON text for each event', async () => {
  const [result] = await sandbox().run(
    fn('const transform = (payload) => payload.map((n) => ({ n }));'),
    ['[1,2,"ü"]'],
  );
  assert.equal(result?.kind === 'array' && result.items, ['{"n":1}', '{"n":2}', '{"n":"ü"}']);
});

test('null drops the message, and so does an array without events', async () => {
  const results = await sandbox().run(fn('function transform(payload) { return payload; }'), [
    'null',
    '[]',
  ]);
  assert.equal(
    results.map(({ kind }) => kind),
    ['dropped', 'dropped'],
  );
});

test('what a call writes to its console comes with its own result', async () => {
  const text =
    'function transform(payload) { console.log("got", payload, [1], new Error("odd"), 1n); console.warn("w"); return {}; }';
  const results = await sandbox().run(fn(text), ['{"a":1}', '2']);
  assert.equal(results[0]?.logs, ['got {"a":1} [1] Error: odd 1', 'w']);
  assert.equal(results[1]?.logs, ['got 2 [1] Error: odd 1', 'w']);
});

test('a console that is flooded keeps the first lines and says how many it dropped', async () => {
  const text =
    'function transform() { for (let i = 0; i < 100000; i += 1) console.log(i, "x".repeat(5000)); return {}; }';
  const [result] = await sandbox().run(fn(text), ['1']);
  assert.is(result?.logs.length, 51);
  assert.is(result?.logs[0]?.length, 1000);
  assert.is(result?.logs.at(-1), '(99950 further lines were dropped)');
});

test('the time that a call took is told', async () => {
  const text =
    'function transform() { const end = Date.now() + 50; while (Date.now() < end); return {}; }';
  const [result] = await sandbox().run(fn(text), ['1']);
  assert.ok(result!.durationMs >= 45, `${result?.durationMs} ms`);
});

test('Date and Math tell the time and random numbers', async () => {
  const text =
    'function transform() { return { now: Date.now(), made: new Date().getTime(), iso: new Date(0).toISOString(), random: Math.random() }; }';
  const before = Date.now();
  const [first, second] = (await sandbox().run(fn(text), ['1', '1'])).map(json) as Record<
    string,
    number
  >[];
  assert.ok(first!['now']! >= before && first!['now']! <= Date.now());
  assert.ok(first!['made']! >= before);
  assert.is(first!['iso'], '1970-01-01T00:00:00.000Z');
  assert.is.not(first!['random'], second!['random']);
});

test('names that prototypes know may be fields of payload and output', async () => {
  const text =
    'function transform(payload) { const out = { a: payload.toString }; out.constructor = 1; out.toString = 2; out.hasOwnProperty = 3; return out; }';
  const [result] = await sandbox().run(fn(text), ['{"toString":"text","__proto__":{"x":1}}']);
  assert.equal(json(result), { a: 'text', constructor: 1, toString: 2, hasOwnProperty: 3 });
});

test('the same key with another text runs the other text', async () => {
  const pool = sandbox({ processes: 1 });
  const run = (text: string): Promise<TransformResult[]> => pool.run({ key: 'same', text }, ['1']);
  const results = await Promise.all([
    run('function transform() { return { a: 1 }; }'),
    run('function transform() { return { b: 2 }; }'),
  ]);
  assert.equal(
    results.map(([result]) => json(result)),
    [{ a: 1 }, { b: 2 }],
  );
});

test('more functions than a process keeps compiled all give their own answers', async () => {
  const pool = sandbox({ processes: 1 });
  const functions = Array.from({ length: 100 }, (_, index) =>
    fn(`function transform() { return { number: ${index} }; }`),
  );
  for (let round = 0; round < 2; round += 1) {
    const results = await within(
      Promise.all(functions.map((each) => pool.run(each, ['1']))),
      60_000,
      '100 functions',
    );
    assert.equal(
      results.map(([result]) => json(result)),
      functions.map((_, number) => ({ number })),
    );
  }
});

test('many runs at once, of several functions, each get their own answers', async () => {
  const pool = sandbox();
  const runs = Array.from({ length: 200 }, async (_, index) => {
    const results = await pool.run(
      fn(`function transform(payload) { return { run: ${index % 7}, got: payload }; }`),
      [`${index}`, `${index + 0.5}`],
    );
    assert.equal(results.map(json), [
      { run: index % 7, got: index },
      { run: index % 7, got: index + 0.5 },
    ]);
  });
  await within(Promise.all(runs), 60_000, '200 runs');
});

test('a text that loops before it defines transform is refused', async () => {
  const running = sandbox({ deadlineMs: 200 }).run(fn('for (;;);'), ['1']);
  const [result] = await within(running, 20_000, 'a text that loops');
  assert.is(result?.kind === 'refused' && result.code, 'timeout');
});

test('one call that overruns in a batch is refused, and all others of the batch are answered', async () => {
  const payloads = Array.from({ length: 200 }, (_, index) =>
    index === 77 || index === 150 ? 'true' : `${index}`,
  );
  const results = await within(
    sandbox({ deadlineMs: 200 }).run(spinOnTrue, payloads),
    30_000,
    'a batch with two overruns',
  );
  for (const [index, result] of results.entries()) {
    if (payloads[index] === 'true') assert.is(result.kind === 'refused' && result.code, 'timeout');
    else assert.equal(json(result), { got: index });
  }
});

test('the deadline is that of a call: a batch may take longer', async () => {
  const text =
    'function transform(payload) { const end = Date.now() + 60; while (Date.now() < end); return { got: payload }; }';
  const payloads = Array.from({ length: 20 }, (_, index) => `${index}`);
  const results = await within(
    sandbox({ deadlineMs: 800 }).run(fn(text), payloads),
    30_000,
    'a slow batch',
  );
  assert.equal(
    results.map(json),
    payloads.map((_, got) => ({ got })),
  );
});

test('while a function loops, call after call, another one is answered', async () => {
  const pool = sandbox({ deadlineMs: 500, processes: 2 });
  let looping = true;
  const loop = pool
    .run(
      spinOnTrue,
      Array.from({ length: 5 }, () => 'true'),
    )
    .finally(() => (looping = false));
  for (let round = 0; round < 20; round += 1) {
    assert.equal((await within(pool.run(echo, [`${round}`]), 10_000, 'a neighbour')).map(json), [
      { got: round },
    ]);
  }
  assert.ok(looping, 'the neighbour waited for the loop');
  assert.ok(
    (await within(loop, 30_000, 'the loop')).every(
      (result) => result.kind === 'refused' && result.code === 'timeout',
    ),
  );
});

test('two functions that loop do not take every process from a third', async () => {
  const pool = sandbox({ deadlineMs: 300, processes: 2 });
  const loops = [1, 2].map((number) => {
    const text = `/* ${number} */ function transform() { for (;;); }`;
    return pool.run(fn(text), ['1', '2', '3', '4']);
  });
  let looping = true;
  const all = Promise.all(loops).finally(() => (looping = false));
  // Both are known after their first call, and then share one process.
  for (let round = 0; round < 20; round += 1)
    await within(pool.run(echo, [`${round}`]), 10_000, 'the third function');
  assert.ok(looping, 'the third function waited for both loops');
  const results = await within(all, 60_000, 'both loops');
  assert.ok(
    results.flat().every((result) => result.kind === 'refused' && result.code === 'timeout'),
  );
});

test('while several functions loop at their first call, those that have answered and those that are new are answered', async () => {
  // Endless: a call that waits for one of them waits forever.
  const pool = sandbox({ deadlineMs: 3_600_000, processes: 2 });
  await pool.run(echo, ['0']);
  const loops = Array.from({ length: 4 }, (_, n) =>
    fn(`/* ${n} */ function transform() { for (;;); }`),
  );
  const ends = loops.map((loop) =>
    pool.run(loop, ['1', '2']).catch((error: unknown) => (error as Error).message),
  );
  for (let round = 0; round < 20; round += 1) {
    assert.equal(
      (await within(pool.run(echo, [`${round}`]), 10_000, 'a function that has answered')).map(
        json,
      ),
      [{ got: round }],
    );
  }
  const fresh = [1, 2, 3].map((n) =>
    pool.run(fn(`/* new ${n} */ function transform(payload) { return { got: payload }; }`), [
      '1',
      '2',
    ]),
  );
  assert.equal(
    (await within(Promise.all(fresh), 30_000, 'new functions')).flat().map(json),
    fresh.flatMap(() => [{ got: 1 }, { got: 2 }]),
  );
  assert.is(pool.processes, 2);
  for (const { key } of loops) pool.cancel(key);
  assert.equal(new Set(await Promise.all(ends)), new Set(['The run was cancelled.']));
});

test('nobody waits for a process that is starting when another one could take the call first', async () => {
  const pool = sandbox({ deadlineMs: 5_000, processes: 2 });
  await pool.run(echo, ['1']);
  const slow = fn(
    'function transform(payload) { const end = Date.now() + payload; while (Date.now() < end); return {}; }',
  );
  await pool.run(slow, ['0']);
  await until('one process', async () => {
    const [first, second] = await guestProcesses();
    if (second) process.kill(second, 'SIGKILL');
    return first !== undefined && second === undefined && pool.processes === 1;
  });
  // The next process never becomes ready.
  Object.assign(pool.command!, {
    file: process.execPath,
    args: ['-e', 'setInterval(() => {}, 1000)'],
  });
  const busy = pool.run(slow, ['100']);
  const neighbour = pool.run(echo, ['2']);
  assert.is(pool.processes, 2, 'a second one was started');
  assert.equal((await within(neighbour, STUCK_MS / 2, 'the neighbour')).map(json), [{ got: 2 }]);
  await busy;
});

test('a process that is killed from outside in the middle of a batch is replaced, and nobody notices', async () => {
  const pool = sandbox({ processes: 1 });
  await pool.run(echo, ['1']);
  const [pid] = await guestProcesses();
  const text =
    'function transform(payload) { const end = Date.now() + 10; while (Date.now() < end); return { got: payload }; }';
  const payloads = Array.from({ length: 80 }, (_, index) => `${index}`);
  let answered = false;
  const run = pool.run(fn(text), payloads).finally(() => (answered = true));
  await sleep(300);
  assert.not.ok(answered, 'the batch was over before the kill');
  process.kill(pid!, 'SIGKILL');
  const results = await within(run, 60_000, 'a batch whose process was killed');
  assert.equal(
    results.map(json),
    payloads.map((_, got) => ({ got })),
  );
  assert.not.ok((await guestProcesses()).includes(pid!));
});

test('a process that is killed while it is idle is replaced when there is work', async () => {
  const pool = sandbox();
  await pool.run(echo, ['1']);
  const [pid] = await guestProcesses();
  process.kill(pid!, 'SIGKILL');
  assert.equal((await within(pool.run(echo, ['2']), 20_000, 'an answer')).map(json), [{ got: 2 }]);
});

test('signals for the whole group do not reach the functions: only the parent ends a process', async () => {
  const pool = sandbox({ processes: 1 });
  await pool.run(echo, ['1']);
  const [pid] = await guestProcesses();
  process.kill(pid!, 'SIGINT');
  process.kill(pid!, 'SIGTERM');
  assert.equal((await pool.run(echo, ['2'])).map(json), [{ got: 2 }]);
  assert.equal(await guestProcesses(), [pid]);
});

test('a closed sandbox has no processes, rejects what was waiting, and takes nothing more', async () => {
  const pool = sandbox();
  const waiting = pool.run(spinOnTrue, ['true']).then(
    () => undefined,
    (error: unknown) => error,
  );
  await until('a process', async () => (await guestProcesses()).length > 0);
  await within(pool.close(), 10_000, 'the sandbox to close');
  assert.equal(await guestProcesses(), []);
  assert.instance(await within(waiting, 1000, 'the rejection'), SandboxError);
  const later = await pool.run(echo, ['1']).catch((error: unknown) => error);
  assert.instance(later, SandboxError);
});

test('when no process can be started, that is told, and the payloads can be run again later', async () => {
  const pool = sandbox();
  const { execPath } = process;
  process.execPath = '/nowhere/node';
  const failure: unknown = await within(pool.run(echo, ['1']), 20_000, 'the rejection').then(
    () => undefined,
    (error: unknown) => error,
  );
  process.execPath = execPath;
  assert.instance(failure, SandboxError);
  assert.match(
    (failure as SandboxError).message,
    /cannot start its child processes: .*\/nowhere\/node/,
  );
  assert.equal((await within(pool.run(echo, ['1']), 20_000, 'an answer')).map(json), [{ got: 1 }]);
});

test.run();
