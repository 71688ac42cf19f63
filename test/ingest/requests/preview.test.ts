import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { preparing } from '#ingest/requests/prepare';
import { preview as runPreview } from '#ingest/requests/preview';
import { dryRun } from '#ingest/requests/replay';
import { idleSandbox, sandboxLimits } from '#ingest/transform/sandboxes';
import { resolveConfig } from '#core/config/config';
import { newId } from '#core/events/ids';

const preview = suite('ingest/requests/preview');

const { config } = resolveConfig({ env: {}, file: { ingest: { max_message_bytes: 1000 } } });
const sandbox = idleSandbox({ ...sandboxLimits(config), processes: 1 });
const prepare = preparing({ sandbox, maxMessageBytes: 1000 });
preview.after(() => sandbox.close());

const on = (text: string, body = '{"id":"o-1"}', headers: Record<string, string> = {}) =>
  runPreview(text, { body: Buffer.from(body), headers }, prepare);

preview('what a function returns is read as an agent reads it', async () => {
  const { kind, results, logs, durationMs } = await on(
    "function transform(p) { console.log(p.id); return { event_type: 'a', data: p, custom_headers: { 'X-Shop': '7' } }; }",
    undefined,
    { 'X-Tenant': 'b', 'content-length': '3' },
  );
  assert.equal([kind, logs, durationMs !== null], ['accepted', ['o-1'], true]);
  const { eventType, data, headers } = results[0]!.event!;
  assert.equal([eventType, data], ['a', '{"id":"o-1"}']);
  assert.equal(headers, { 'x-tenant': 'b', 'x-shop': '7' });
});

preview('a message that is not JSON is handed over as a string', async () => {
  const { results } = await on(
    "function transform(p) { return { event_type: p.split(';')[0], data: {} }; }",
    'paid;7',
  );
  assert.is(results[0]?.event?.eventType, 'paid');
});

preview('null drops, and an array is several results', async () => {
  assert.is((await on('function transform() { return null; }')).kind, 'dropped');
  const { kind, results } = await on(
    "function transform() { return [1, 2].map((n) => ({ event_type: 'a', data: { n } })); }",
  );
  assert.equal(
    [kind, results.map(({ json }) => json)],
    ['accepted', ['{"event_type":"a","data":{"n":1}}', '{"event_type":"a","data":{"n":2}}']],
  );
});

for (const [what, text, code, sentence] of [
  [
    'a syntax error',
    'function transform() {\n  retrun 1;\n}',
    'transform_not_compiled',
    /on line 2\./,
  ],
  ['a throw', 'function transform(p) {\n  return p.a.b;\n}', 'transform_threw', /on line 2\./],
  [
    'a promise',
    'async function transform() { return {}; }',
    'transform_promise',
    /returned a promise/,
  ],
  ['a text', "function transform() { return 'x'; }", 'transform_not_an_object', /returned a text/],
  [
    'another name',
    'function transfrom() {}',
    'transform_no_transform',
    /no function with the name transform/,
  ],
  [
    'a result without its fields',
    'function transform() { return {}; }',
    'invalid_transform_output',
    /event_type is missing; data is missing/,
  ],
] as const) {
  preview(`${what} is refused with the code and the sentence of quarantine`, async () => {
    const { kind, refusal } = await on(text);
    assert.equal([kind, refusal?.code], ['refused', code]);
    assert.match(refusal!.reason, sentence);
  });
}

preview('one bad result of several refuses the message, and says which', async () => {
  const { refusal, results } = await on(
    "function transform() { return [{ event_type: 'a', data: {} }, { event_type: 'b' }]; }",
  );
  assert.match(refusal!.reason, /^Result 2 of 2: .*data is missing/);
  assert.equal(
    results.map((it) => it.refusal === null),
    [true, false],
  );
});

preview(
  'a message that no agent would hand to a function is refused before it is called',
  async () => {
    const text = 'function transform(p) { return p; }';
    for (const [body, code] of [
      ['', 'empty'],
      ['x'.repeat(1001), 'too_large'],
      ['['.repeat(300), 'too_deep'],
    ] as const) {
      const { refusal, durationMs } = await on(text, body);
      assert.equal([refusal?.code, durationMs], [code, null]);
    }
  },
);

preview('it says of a message what its replay from quarantine does', async () => {
  const texts = [
    'function transform(p) { return p; }',
    "function transform() { return [{ event_type: 'a', data: {} }, { event_type: 'b', data: [] }]; }",
    'function transform() { return []; }',
    'function transform(p) { throw new Error(p.id); }',
    'function transform() { retrun 1; }',
  ];
  const bodies = [
    '',
    'x'.repeat(1001),
    '['.repeat(300),
    'paid;7',
    '{"event_type":"a","data":{"n":1},"idempotency_key":"k"}',
    '{"id":7}',
  ];
  for (const bodyFunction of texts)
    for (const body of bodies) {
      const message = {
        projectId: newId(),
        sourceId: newId(),
        occurredAtMs: Date.now(),
        coordinates: 'c',
        headers: { 'X-Tenant': 'b' },
      };
      const verdict = await dryRun(
        { ...message, id: newId(), body: Buffer.from(body), bodyFunction } as never,
        prepare,
      );
      const { kind, refusal, results } = await on(bodyFunction, body, message.headers);
      assert.is(kind, verdict.kind, `${bodyFunction} on ${body}`);
      if (verdict.kind === 'refused') assert.equal(refusal, verdict.refusal);
      const told = (event: object) => ({
        ...event,
        id: null,
        occurredAtMs: null,
        projectId: null,
        sourceId: null,
        coordinates: null,
      });
      if (verdict.kind === 'accepted')
        assert.equal(
          results.map(({ event }) => told(event!)),
          verdict.events.map(told),
        );
    }
});

preview.run();
