import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { silentLog } from '#core/logging/log';
import type { IngestSource } from '#ingest/message/ingest-source';
import { rejectCodes } from '#ingest/validate/reject-codes';
import { parseTransformOutput } from '#ingest/validate/parse-message';
import { Overruns } from '#ingest/transform/overruns';
import { Transformer, type Transformed } from '#ingest/transform/transformer';
import { REFUSALS, Sandbox } from '@gateway/sandbox';
import { guestProcesses } from '../../sandbox/processes.js';
import { until, within } from '../../support/until.js';

const transform = suite('ingest/transform/transformer');

interface Scene {
  readonly transformer: Transformer;
  readonly sandbox: Sandbox;
  run(source: IngestSource, text: string): Promise<Transformed>;
}

async function scene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const sandbox = new Sandbox({ deadlineMs: 500, processes: 2 });
  const transformer = new Transformer({ sandbox, log: silentLog });
  const run = (source: IngestSource, text: string) =>
    within(
      new Promise<Transformed>((resolve) =>
        transformer.push(source, source.bodyFunction ?? '', text, resolve),
      ),
      30_000,
      'a result',
    );
  try {
    await within(test({ transformer, sandbox, run }), 60_000, 'the test');
  } finally {
    transformer.stop();
    await sandbox.close();
  }
}

const source = (bodyFunction: string, id = 's'): IngestSource => ({
  projectId: 'p',
  id,
  bodyFunction,
});

function dataOf(transformed: Transformed): unknown {
  if (transformed.kind !== 'results') return transformed;
  const message = parseTransformOutput(transformed.results[0]!);
  return 'data' in message ? JSON.parse(message.data) : message;
}

transform('each message gets its own result, in thousands at once and of several sources', () =>
  scene(async ({ run }) => {
    const functions = ['a', 'b', 'c'].map((name) =>
      source(
        `function transform(payload) { return { event_type: '${name}', data: { n: payload.n, by: '${name}' } } }`,
        name,
      ),
    );
    const results = await Promise.all(
      Array.from({ length: 3000 }, (_, n) => run(functions[n % 3]!, `{"n":${n}}`)),
    );
    for (const [n, result] of results.entries())
      assert.equal(dataOf(result), { n, by: ['a', 'b', 'c'][n % 3] });
  }),
);

transform(
  'a message that is not JSON reaches the function as a string, numbers and lists as they are',
  () =>
    scene(async ({ run }) => {
      const echo = source(
        'function transform(payload) { return { event_type: "a", data: { payload, type: typeof payload } } }',
      );
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
      assert.equal(
        dataOf(
          await run(
            source(`function transform() { return { event_type: 'a', data: { n: ${n} } } }`),
            '{}',
          ),
        ),
        { n },
      );
  }),
);

transform('what a function has not decided when it is changed is for the one that follows', () =>
  scene(async ({ transformer, run }) => {
    const before = source('function transform() { for (;;); }');
    const after = source('function transform() { return null; }');
    const results = Array.from({ length: 100 }, (_, n) => run(before, `{"n":${n}}`));
    await new Promise((resolve) => setTimeout(resolve, 100));
    transformer.change(before, after);
    // A running call may have been refused by its deadline; a hundred of them would take a minute.
    for (const result of await within(Promise.all(results), 10_000, 'all of them'))
      assert.equal(result, { kind: 'changed', source: after });
    assert.equal(
      await run(before, '{}'),
      { kind: 'changed', source: after },
      'what is pushed for it later',
    );
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
    assert.ok(
      kinds.includes('changed') && kinds.every((kind) => kind === 'changed' || kind === 'results'),
      kinds.join(' '),
    );
    assert.equal(
      (await guestProcesses()).filter((pid) => processes.includes(pid)),
      processes,
    );
  }),
);

transform(
  'a call that loops on while its function is changed counts as an overrun of its source',
  async () => {
    const sandbox = new Sandbox({ deadlineMs: 200, processes: 2 });
    const overruns = new Overruns({ max: 1, windowMs: 60_000 });
    let told: (reason: string) => void = () => undefined;
    const paused = new Promise<string>((resolve) => (told = resolve));
    const pause = (projectId: string, sourceId: string, reason: string) => {
      told(`${projectId} ${sourceId}: ${reason}`);
      return Promise.resolve();
    };
    const transformer = new Transformer({ sandbox, log: silentLog, overruns, pause });
    try {
      const before = source('function transform(n) { while (n > 0); return null; }');
      const run = (text: string) =>
        new Promise<Transformed>((resolve) =>
          transformer.push(before, before.bodyFunction!, text, resolve),
        );
      assert.equal(await within(run('0'), 30_000, 'a result'), { kind: 'dropped' });
      const results = Promise.all(Array.from({ length: 200 }, () => run('1')));
      // After two turns of the event loop they are in the process, or wait for it.
      for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
      const after = source('function transform() { return null; }');
      transformer.change(before, after);
      for (const result of await within(results, 30_000, 'all of them'))
        assert.equal(result, { kind: 'changed', source: after });
      assert.match(
        await within(paused, 30_000, 'the pause'),
        /^p s: 1 of 1 calls of its transform function overran within \d s; the last one: /,
      );
    } finally {
      transformer.stop();
      await sandbox.close();
    }
  },
);

transform('one message that never ends does not take its neighbours with it', () =>
  scene(async ({ run }) => {
    const some = source(
      'function transform(payload) { if (payload.n === 50) for (;;); return { event_type: "a", data: payload } }',
    );
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, n) => run(some, `{"n":${n}}`)),
    );
    for (const [n, result] of results.entries()) {
      if (n !== 50) assert.equal(dataOf(result), { n });
      else assert.is(result.kind === 'refused' && result.rejection.code, 'transform_timeout');
    }
  }),
);

transform(
  'the functions of a project have its share of the sandbox, those of another project a share of their own',
  async () => {
    const projects: unknown[] = [];
    const run: Sandbox['run'] = (fn, payloads) => {
      projects.push(fn.project);
      return Promise.resolve(payloads.map(() => ({ kind: 'dropped', logs: [], durationMs: 1 })));
    };
    const transformer = new Transformer({ sandbox: { run }, log: silentLog });
    for (const projectId of ['p', 'q'])
      await new Promise<Transformed>((resolve) =>
        transformer.push({ ...source('x', projectId), projectId }, 'x', '{}', resolve),
      );
    assert.equal(projects, ['p', 'q']);
  },
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

transform(
  'output that waits for its commit stops further calls of its project, and of no other',
  async () => {
    const begun: unknown[] = [];
    const json = JSON.stringify({ event_type: 'a', data: { text: 'x'.repeat(1e6) } });
    const run: Sandbox['run'] = (fn, payloads) => {
      begun.push(...payloads.map(() => fn.project));
      return Promise.resolve(
        payloads.map(() => ({ kind: 'object', json, logs: [], durationMs: 1 })),
      );
    };
    const transformer = new Transformer({ sandbox: { run }, log: silentLog });
    const [large, other] = [source('f'), { ...source('g', 't'), projectId: 'q' }];
    const ends: (() => void)[] = [];
    for (let n = 0; n < 200; n++)
      transformer.push(large, 'f', '1', () => new Promise<void>((resolve) => ends.push(resolve)));
    const callsOf = (project: string) => begun.filter((one) => one === project).length;
    await until('calls', () => ends.length >= 16);
    transformer.push(other, 'g', '1', () => undefined);
    await until('a call of the other project', () => callsOf('q') === 1);
    const first = callsOf('p');
    // Two batches can have been in progress while there was capacity: the first one, with unknown
    // output size, and another.
    assert.ok(first >= 16 && first <= 16 + 2 * 16, `${first} calls`);
    while (ends.length > 0 || callsOf('p') < 200) {
      for (const end of ends.splice(0)) end();
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.is(callsOf('p'), 200);
  },
);

transform.run();
