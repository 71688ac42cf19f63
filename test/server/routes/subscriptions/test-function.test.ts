import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { makeEvents } from '../../../store/made.js';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const testing = suite('server/routes/subscriptions/test-function');

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
testing.before(async () => {
  api = await startApi({
    file: { server: { function_tests: 0 }, transform: { deadline_ms: 300 } },
  });
  project = await makeProject(api);
});
testing.after(() => api.close());

const GOOD = 'function transform({ n }) { console.log("n", n); return { n, at: "shop" }; }';
const test = (body: Record<string, unknown> | string) =>
  api.call('POST', `${project.path}/subscriptions/test_function`, body);

testing('a function is run on data, and what would be sent is shown', async () => {
  const { status, body, text } = await test(
    `{"function":${JSON.stringify(GOOD)},"payload":{"n":1.50}}`,
  );
  assert.equal(
    [status, body.data.outcome, body.data.refusal, body.data.log],
    [200, 'accepted', null, ['n 1.5']],
  );
  assert.ok(body.data.duration_ms > 0 && body.data.duration_ms < 300);
  assert.match(text, '"payload":{"n":1.5,"at":"shop"}');
});

testing('the stored function runs on the data of an event', async () => {
  const endpoint = await api.call('POST', `${project.path}/endpoints`, {
    name: 'shop',
    url: 'https://example.com',
  });
  const fields = { name: 'all', endpoint_id: endpoint.body.data.uid };
  const [stored, plain] = await Promise.all(
    [GOOD, null].map(async (fn) => {
      return (await api.call('POST', `${project.path}/subscriptions`, { ...fields, function: fn }))
        .body.data.uid as string;
    }),
  );
  const [eventId] = await makeEvents(api.db, project.id, [{ atMs: Date.now(), data: '{"n":7}' }]);
  assert.equal((await test({ subscription_id: stored, event_id: eventId })).body.data.payload, {
    n: 7,
    at: 'shop',
  });
  assert.equal(mistakes(await test({ subscription_id: plain, event_id: eventId })), [
    'subscription_id is that of a subscription without a function',
  ]);
  for (const wrong of [
    { subscription_id: newId(), event_id: eventId },
    { subscription_id: stored, event_id: newId() },
  ])
    assert.is((await test(wrong)).status, 404);
});

testing('a function that takes the message gets that of the event', async () => {
  const [id] = await makeEvents(api.db, project.id, [{ atMs: Date.now(), sourceId: newId() }]);
  const fn =
    'function transform(payload, { key, topic, offset, headers }) { return { key, topic, offset, headers }; }';
  assert.equal((await test({ function: fn, event_id: id })).body.data.payload, {
    key: null,
    topic: 'topic',
    offset: 0,
    headers: { 'x-a': 'b' },
  });
});

testing('what is not sent is told apart: null, and failures with their line', async () => {
  const run = async (fn: string) => (await test({ function: fn, payload: {} })).body.data;
  const dropped = await run('const transform = () => null;');
  assert.equal([dropped.outcome, dropped.payload, dropped.refusal], ['dropped', null, null]);
  const threw = await run('function transform(payload) {\n  return payload.a.b;\n}');
  assert.equal(
    [threw.outcome, threw.payload, threw.refusal.code, threw.refusal.line],
    ['failed', null, 'transform_threw', 2],
  );
  const wrong = await run('function transform(payload) {\n  return payload +;\n}');
  assert.equal(
    [wrong.outcome, wrong.refusal.code, wrong.refusal.line, wrong.duration_ms],
    ['failed', 'transform_not_compiled', 2, null],
  );
  assert.is((await run('function transform() { for (;;); }')).refusal.code, 'transform_timeout');
  const several = await run('function transform(payload) { return [payload, payload]; }');
  assert.equal([several.outcome, several.refusal.code], ['failed', 'transform_not_an_object']);
  assert.match(several.refusal.reason, 'a delivery has one object');
});

testing('a request says which function and which data', async () => {
  assert.equal(mistakes(await test({ function: GOOD })), [
    'payload is missing; give it, or event_id',
  ]);
  assert.equal(mistakes(await test({ payload: {} })), [
    'function is missing; give it, or subscription_id',
  ]);
  assert.equal(mistakes(await test({ function: GOOD, subscription_id: newId(), payload: {} })), [
    'subscription_id cannot be combined with function',
  ]);
  assert.equal(mistakes(await test({ function: GOOD, payload: {}, event_id: newId() })), [
    'payload cannot be combined with event_id',
  ]);
});

testing.run();
