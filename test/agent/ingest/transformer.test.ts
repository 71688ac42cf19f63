import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { silentLog } from '#core/logging/log';
import { type IngestSource, rejectCodes } from '#agent/model/ingest';
import { Transformer, type Transformed } from '#agent/ingest/transformer';
import { REFUSALS, Sandbox } from '@gateway/sandbox';
import { guestProcesses } from '../../sandbox/processes.js';
import { within } from '../../support/until.js';

const transform = suite('agent/ingest/transformer');

interface Scene {
  readonly transformer: Transformer;
  readonly sandbox: Sandbox;
  run(source: IngestSource, text: string): Promise<Transformed>;
}

async function scene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const sandbox = new Sandbox({ deadlineMs: 500, processes: 2 });
  const transformer = new Transformer({ sandbox, log: silentLog });
  const run = (source: IngestSource, text: string) =>
    within(new Promise<Transformed>((resolve) => transformer.push(source, source.bodyFunction ?? '', text, resolve)), 30_000, 'a result');
  try {
    await within(test({ transformer, sandbox, run }), 60_000, 'the test');
  } finally {
    transformer.stop();
    await sandbox.close();
  }
}

const source = (bodyFunction: string, id = 's'): IngestSource => ({ projectId: 'p', id, bodyFunction });

/** The data of a result that is one event. */
function dataOf(transformed: Transformed): unknown {
  if (transformed.kind !== 'messages') return transformed;
  const [message] = transformed.messages;
  return message && 'data' in message ? JSON.parse(message.data) : message;
}

transform('each message gets its own result, in thousands at once and of several sources', () =>
  scene(async ({ run }) => {
    const functions = ['a', 'b', 'c'].map((name) =>
      source(`function transform(payload) { return { event_type: '${name}', data: { n: payload.n, by: '${name}' } } }`, name),
    );
    const results = await Promise.all(Array.from({ length: 3000 }, (_, n) => run(functions[n % 3]!, `{"n":${n}}`)));
    for (const [n, result] of results.entries()) assert.equal(dataOf(result), { n, by: ['a', 'b', 'c'][n % 3] });
  }),
);

transform('a message that is not JSON reaches the function as a string, numbers and lists as they are', () =>
  scene(async ({ run }) => {
    const echo = source('function transform(payload) { return { event_type: "a", data: { payload, type: typeof payload } } }');
    assert.equal(dataOf(await run(echo, 'a;b')), { payload: 'a;b', type: 'string' });
    assert.equal(dataOf(await run(echo, '"a"')), { payload: 'a', type: 'string' });
    assert.equal(dataOf(await run(echo, '7')), { payload: 7, type: 'number' });
    assert.equal(dataOf(await run(echo, '[1]')), { payload: [1], type: 'object' });
    assert.equal(dataOf(await run(echo, 'null')), { payload: null, type: 'object' });
  }),
);

transform('a changed function is another one at once, for the same source', () =>
  scene(async ({ run }) => {
    for (const n of [1, 2, 3])
      assert.equal(dataOf(await run(source(`function transform() { return { event_type: 'a', data: { n: ${n} } } }`), '{}')), { n });
  }),
);

transform('what a function has not decided when it is changed is for the one that follows', () =>
  scene(async ({ transformer, run }) => {
    const before = source('function transform() { for (;;); }');
    const after = source('function transform() { return null; }');
    const results = Array.from({ length: 100 }, (_, n) => run(before, `{"n":${n}}`));
    await new Promise((resolve) => setTimeout(resolve, 100));
    transformer.change(before, after);
    // A call that was running may have been refused by its deadline; a hundred of them would take a minute.
    for (const result of await within(Promise.all(results), 10_000, 'all of them'))
      assert.equal(result, { kind: 'changed', source: after });
    assert.equal(await run(before, '{}'), { kind: 'changed', source: after }, 'what is pushed for it later');
    assert.equal(await run(after, '{}'), { kind: 'dropped' });
  }),
);

transform('a change costs no process: what is running is not wanted any more, and not killed', () =>
  scene(async ({ transformer, run }) => {
    const before = source(
      'function transform(n) { let a = 0; for (let k = 0; k < 1e6; k += 1) a += k % n; return { event_type: "a", data: { a } }; }',
    );
    await run(before, '7');
    const processes = await guestProcesses();
    const results = Array.from({ length: 200 }, (_, n) => run(before, `${n + 1}`));
    await new Promise((resolve) => setTimeout(resolve, 30));
    transformer.change(before, source('function transform() { return null; }'));
    const kinds = (await Promise.all(results)).map(({ kind }) => kind);
    assert.ok(kinds.includes('changed') && kinds.every((kind) => kind === 'changed' || kind === 'messages'), kinds.join(' '));
    assert.equal(
      (await guestProcesses()).filter((pid) => processes.includes(pid)),
      processes,
    );
  }),
);

transform('one message that never ends does not take its neighbours with it', () =>
  scene(async ({ run }) => {
    const some = source('function transform(payload) { if (payload.n === 50) for (;;); return { event_type: "a", data: payload } }');
    const results = await Promise.all(Array.from({ length: 100 }, (_, n) => run(some, `{"n":${n}}`)));
    for (const [n, result] of results.entries()) {
      if (n !== 50) assert.equal(dataOf(result), { n });
      else assert.is(result.kind === 'refused' && result.rejection.code, 'transform_timeout');
    }
  }),
);

transform('every refusal code of the sandbox has a reject code', () => {
  assert.equal(
    Object.keys(REFUSALS).filter((code) => !(`transform_${code}` in rejectCodes)),
    [],
  );
});

transform('when the sandbox is gone nothing is decided', async () => {
  const sandbox = new Sandbox({ processes: 1 });
  const transformer = new Transformer({ sandbox, log: silentLog });
  await sandbox.close();
  const result = new Promise<Transformed>((resolve) =>
    transformer.push(source('function transform() {}'), 'function transform() {}', '{}', resolve),
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  transformer.stop();
  assert.equal(await within(result, 30_000, 'a result'), { kind: 'stopped' });
});

transform.run();
