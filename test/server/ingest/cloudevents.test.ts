import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sdks } from '../../clients/cloudevents/sdks.js';
import { makeProject, mistakes, startApi, type Api } from '../api.js';
import { httpSource } from './http-source.js';

const ingest = suite('server/ingest/cloudevents');

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
ingest.before(async () => {
  api = await startApi({});
  project = await makeProject(api, { type: 'incoming' });
});
ingest.after(() => api.close());

const source = (fields: object = {}) =>
  httpSource(api, project, { format: 'cloudevents', ...fields });
const STRUCTURED = { 'content-type': 'application/cloudevents+json' };
const BATCH = { 'content-type': 'application/cloudevents-batch+json' };
const event = { specversion: '1.0', id: '1', source: '/shop', type: 'order.paid', data: { n: 1 } };
const rows = () =>
  api.db.rows<{ event_type: string; data: string; headers: string; idempotency_key: string }>(
    'select event_type, data, headers, idempotency_key from events order by id',
  );

ingest('each mode of the SDKs makes an event, once', async () => {
  const { post } = await source();
  for (const { name, run } of await sdks()) {
    await api.db.rows('delete from events');
    for (const { name: mode, headers, base64 } of run([]).made) {
      if (mode.startsWith('kafka')) continue;
      const { status, body } = await post(Buffer.from(base64, 'base64'), headers);
      assert.is(status, 200, `${name}, ${mode}: ${JSON.stringify(body)}`);
      assert.ok(['accepted', 'duplicate'].includes(body.data.outcome));
    }
    const made = await rows();
    assert.is(made.length, 2, name);
    const [plain, image] = made;
    assert.match(plain!.data, /"id": ?9007199254740993/);
    assert.match(plain!.idempotency_key, /^https:\/\/shop\.example\.com\/orders (py|go)-1$/);
    assert.is(JSON.parse(plain!.headers)['ce-tenant'], 'acme');
    assert.is(image!.data, '{"data_base64":"iVBORwA="}');
  }
});

ingest('an invalid CloudEvent is answered with 400 and the name of its attribute', async () => {
  const { post } = await source();
  const refused = await post(JSON.stringify({ ...event, id: undefined }), STRUCTURED);
  assert.is(refused.status, 400);
  assert.match(refused.text, 'The attribute id is missing');
  const batch = await post(JSON.stringify([event, { ...event, time: 'x' }]), BATCH);
  assert.is(batch.status, 400);
  assert.match(batch.text, 'CloudEvent 2 of 2: The attribute time must be a time of RFC 3339');
  const many = await post(JSON.stringify(Array(1_001).fill(event)), BATCH);
  assert.match(many.text, '1001 CloudEvents');
  assert.is((await post('[]', BATCH)).status, 200);
});

ingest('a function gets the ingest message of each CloudEvent', async () => {
  await api.db.rows('delete from events');
  const { post } = await source({
    body_function:
      'function transform(payload) { return { ...payload, data: { n: payload.data.n + 1 } }; }',
  });
  const done = await post(JSON.stringify([event, { ...event, id: '2', data: { n: 5 } }]), BATCH);
  assert.is(done.body.data.events, 2);
  assert.equal((await rows()).map(({ event_type, data }) => event_type + data).sort(), [
    'order.paid{"n":2}',
    'order.paid{"n":6}',
  ]);
});

ingest('the origin that asks is allowed, by a source of CloudEvents alone', async () => {
  const ask = async (url: string, origin: string) => {
    const { status, headers } = await fetch(api.url + url, {
      method: 'OPTIONS',
      headers: { 'webhook-request-origin': origin, 'webhook-request-rate': '120' },
    });
    const names = ['webhook-allowed-origin', 'webhook-allowed-rate', 'allow'];
    return [status, ...names.map((name) => headers.get(name))];
  };
  const { url } = await source();
  assert.equal(await ask(url, 'events.example.com'), [200, 'events.example.com', '*', 'POST']);
  assert.equal(await ask(url, 'a b'), [204, null, null, 'POST']);
  const plain = await httpSource(api, project);
  assert.is(plain.view['format' as never], null);
  assert.equal(await ask(plain.url, 'events.example.com'), [204, null, null, 'POST']);
  const handshake = await httpSource(api, project, {
    verifier: { type: 'basic_auth', basic_auth: { username: 'a', password: 'b' } },
    format: 'cloudevents',
  });
  assert.is((await ask(handshake.url, 'events.example.com'))[0], 401);
});

ingest('an unknown format is refused', async () => {
  const made = await api.call('POST', `${project.path}/sources`, {
    name: 'a',
    type: 'http',
    format: 'fax',
  });
  assert.is(made.status, 422);
  assert.ok(mistakes(made).some((it) => it.startsWith('format')));
});

ingest.run();
