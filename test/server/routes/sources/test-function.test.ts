import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { insertSource } from '#store/config/sources';
import { newId } from '#core/events/ids';
import { quarantineMessages } from '#store/quarantine/messages';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const testing = suite('server/routes/sources/test-function');

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
let sourceId: string;
let endpointId: string;
const GOOD =
  'function transform(payload) { console.log(payload.id); return { event_type: "order." + payload.status, data: payload }; }';
testing.before(async () => {
  api = await startApi({
    file: { server: { function_tests: 0 }, transform: { deadline_ms: 300 } },
  });
  project = await makeProject(api);
  const fields = {
    name: 'orders',
    type: 'pub_sub',
    pub_sub: { type: 'kafka' },
    body_function: GOOD,
    is_disabled: false,
  } as const;
  ({ id: sourceId } = await insertSource(api.db.knex, project.id, fields));
  endpointId = (
    await api.call('POST', `${project.path}/endpoints`, {
      name: 'shop',
      url: 'https://example.com/',
    })
  ).body.data.uid;
  for (const type of ['order.paid', 'order.lost'])
    await api.call('POST', `${project.path}/subscriptions`, {
      name: type,
      endpoint_id: endpointId,
      filter_config: { event_types: [type] },
    });
});
testing.after(() => api.close());

const test = (body: Record<string, unknown> | string, path = project.path) =>
  api.call('POST', `${path}/sources/test_function`, body);

testing(
  'a function is run on a payload byte for byte, with its console, its time, and where the events would go',
  async () => {
    const { status, body, text } = await test(
      `{"function":${JSON.stringify(GOOD)},"payload":{"id":"o-1","status":"paid","n":1.50}}`,
    );
    assert.is(status, 200);
    const { outcome, refusal, log, duration_ms, result_count, results } = body.data;
    assert.equal([outcome, refusal, log, result_count], ['accepted', null, ['o-1'], 1]);
    assert.ok(duration_ms > 0 && duration_ms < 300);
    assert.match(
      text,
      '"payload":{"event_type":"order.paid","data":{"id":"o-1","status":"paid","n":1.5}}',
    );
    const { rule, outcome: routed, endpoint_count, endpoints, subscriptions } = results[0].route;
    assert.equal(
      [rule, routed, endpoint_count, endpoints[0].uid, endpoints[0].name],
      ['subscriptions', 'routed', 1, endpointId, 'shop'],
    );
    assert.equal(
      subscriptions.map(
        (it: { name: string; matches: boolean; mismatch: { part: string } | null }) => [
          it.name,
          it.matches,
          it.mismatch?.part,
        ],
      ),
      [
        ['order.paid', true, undefined],
        ['order.lost', false, 'event_types'],
      ],
    );
  },
);

testing(
  'what the function does wrong is told with its line, and nothing else runs on',
  async () => {
    const refused = async (fn: string, payload: unknown = {}) => {
      const { status, body } = await test({ function: fn, payload });
      assert.equal([status, body.data.outcome], [200, 'quarantined']);
      return body.data;
    };
    const threw = await refused('function transform(payload) {\n  return payload.a.b;\n}');
    assert.equal([threw.refusal.code, threw.refusal.line], ['transform_threw', 2]);
    assert.match(threw.refusal.reason, 'TypeError');
    const wrong = await refused('function transform(payload) {\n  return payload +;\n}');
    assert.equal(
      [wrong.refusal.code, wrong.refusal.line, wrong.duration_ms],
      ['transform_not_compiled', 2, null],
    );
    assert.is(
      (await refused('function transform() { for (;;); }')).refusal.code,
      'transform_timeout',
    );
    const mixed = await refused(
      'function transform() { return [{ event_type: "a", data: {} }, { data: 7 }]; }',
    );
    assert.equal(
      mixed.results.map((it: { refusal: { code: string } | null }) => it.refusal?.code),
      [undefined, 'invalid_transform_output'],
    );
    assert.is(
      (await test({ function: 'function transform() { return null; }', payload: 1 })).body.data
        .outcome,
      'dropped',
    );
    const many = await test({
      function: 'function transform() { return Array(500).fill({ event_type: "a", data: {} }); }',
      payload: [],
    });
    assert.equal([many.body.data.result_count, many.body.data.results.length], [500, 20]);
    assert.equal(
      [many.body.data.results[0].route.outcome, many.body.data.results[19].route],
      ['no_subscription', null],
    );
  },
);

testing(
  'the stored function of a source runs, also on a quarantined message with its bytes and headers',
  async () => {
    const stored = await test({ source_id: sourceId, payload: { id: 'o-2', status: 'lost' } });
    assert.is(stored.body.data.results[0].payload.event_type, 'order.lost');
    const id = newId();
    await quarantineMessages(api.db.pool, [
      {
        projectId: project.id,
        id,
        sourceId,
        occurredAtMs: Date.now(),
        coordinates: 'orders/0/7',
        code: 'transform_threw',
        reason: 'x',
        headers: '{"x-shop":"7"}',
        message: '{"key":"o-3"}',
        raw: Buffer.from('{"id":"o-3","status":"paid"}'),
      },
    ]);
    assert.equal((await test({ quarantine_id: id })).body.data.log, ['o-3']);
    const bytes =
      'function transform(payload, message) { return { event_type: String(message.bytes.length), data: {} }; }';
    assert.is(
      (await test({ quarantine_id: id, function: bytes })).body.data.results[0].payload.event_type,
      '28',
    );
    const whole =
      'function transform(payload, { bytes, timestamp, ...message }) { return { event_type: "a", data: message }; }';
    const messageOf = async (body: object) =>
      (await test({ function: whole, ...body })).body.data.results[0].payload.data;
    assert.equal(await messageOf({ quarantine_id: id }), {
      key: 'o-3',
      topic: 'orders',
      partition: 0,
      offset: 7,
      headers: { 'x-shop': '7' },
    });
    assert.equal(await messageOf({ payload: {}, key: 'k', headers: { 'X-A': '1' } }), {
      key: 'k',
      headers: { 'x-a': '1' },
    });
    const other = await makeProject(api, { name: 'other' });
    assert.is((await test({ quarantine_id: id, function: bytes }, other.path)).status, 404);
    assert.is((await test({ source_id: sourceId, payload: {} }, other.path)).status, 404);
  },
);

testing(
  'edited bytes take the place of those of a quarantined message, and without a function the message stands as it is',
  async () => {
    const fields = {
      name: 'plain',
      type: 'pub_sub',
      pub_sub: { type: 'kafka' },
      body_function: null,
      is_disabled: false,
    } as const;
    const { id: plain } = await insertSource(api.db.knex, project.id, fields);
    const id = newId();
    const message = {
      projectId: project.id,
      id,
      sourceId: plain,
      occurredAtMs: Date.now(),
      coordinates: 'orders/0/8',
      headers: '{}',
    };
    await quarantineMessages(api.db.pool, [
      { ...message, code: 'not_json', reason: 'x', raw: Buffer.from('{"event_type":') },
    ]);
    assert.equal((await test({ quarantine_id: id })).body.data.refusal.code, 'not_json');
    const { body, text } = await test({
      quarantine_id: id,
      raw: '{"event_type":"order.paid","data":{"n":1.50}}',
    });
    assert.equal(
      [body.data.outcome, body.data.duration_ms, body.data.results[0].route.endpoints[0].name],
      ['accepted', null, 'shop'],
    );
    assert.match(text, '"payload":{"event_type":"order.paid","data":{"n":1.50}}');
    const bytes =
      'function transform(payload, message) { return { event_type: String(message.bytes[0]), data: {} }; }';
    const binary = await test({
      function: bytes,
      raw: Buffer.from([0xff, 0]).toString('base64'),
      raw_encoding: 'base64',
    });
    assert.is(binary.body.data.results[0].payload.event_type, '255');
  },
);

testing('a request says which function and which message', async () => {
  assert.equal(mistakes(await test({ function: GOOD })), [
    'payload is missing; give it, raw, quarantine_id, or event_id',
  ]);
  assert.equal(mistakes(await test({ function: GOOD, payload: {}, raw: '{}' })), [
    'payload cannot be combined with raw',
  ]);
  assert.equal(mistakes(await test({ payload: {} })), [
    'function is missing; give function or source_id',
  ]);
  assert.equal(mistakes(await test({ function: GOOD, source_id: sourceId, payload: {} })), [
    'source_id cannot be combined with function',
  ]);
  assert.equal(mistakes(await test({ function: GOOD, payload: {}, quarantine_id: newId() })), [
    'payload cannot be combined with quarantine_id',
  ]);
  assert.equal(
    mistakes(await test({ function: GOOD, event_id: newId(), quarantine_id: newId() })),
    ['event_id cannot be combined with quarantine_id'],
  );
});

testing(
  'server.function_tests: a project tests so many functions a second after twenty, and others are not affected',
  async () => {
    const limited = await startApi();
    try {
      const { path } = await makeProject(limited);
      const post = (at: string) =>
        limited.call('POST', `${at}/sources/test_function`, { function: GOOD, payload: {} });
      const answers = await Promise.all(Array.from({ length: 24 }, () => post(path)));
      const refused = answers.filter(({ status }) => status === 429);
      assert.ok(refused.length >= 2 && refused.length <= 4, `${refused.length} were refused`);
      assert.equal(
        [refused[0]!.body.code, refused[0]!.headers.get('retry-after')],
        ['too_many_function_tests', '1'],
      );
      assert.is((await post((await makeProject(limited, { name: 'other' })).path)).status, 200);
    } finally {
      await limited.close();
    }
  },
);

testing.run();
