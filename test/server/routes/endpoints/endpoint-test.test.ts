import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { eventDeliveryId, newId } from '#core/events/ids';
import { makeProject, startApi, type Api } from '../../api.js';

const test = suite('server/routes/endpoints/endpoint-test');

let api: Api;
let path: string;
test.before(async () => {
  api = await startApi();
  ({ path } = await makeProject(api));
});
test.after(() => api.close());

const makeEndpoint = async () =>
  (await api.call('POST', `${path}/endpoints`, { name: 'shop', url: 'https://example.com' })).body
    .data.uid as string;

const dataOf = async (id: string) => {
  const {
    event_type: type,
    endpoint_id: endpointId,
    data,
  } = (await api.call('GET', `${path}/events/${id}`)).body.data;
  return { type, endpointId, data };
};

test('an endpoint is sent an event that names it alone, and the id of the delivery is known', async () => {
  const endpointId = await makeEndpoint();
  const { status, body } = await api.call('POST', `${path}/endpoints/${endpointId}/test`, {});
  const { uid, event_delivery_id: deliveryId } = body.data;
  assert.equal([status, deliveryId], [201, eventDeliveryId(uid, endpointId, null)]);
  const { type, endpointId: to, data } = await dataOf(uid);
  assert.equal([type, to], ['gateway.test', endpointId]);
  // Its owner may be a customer, who does not know the project by its name.
  assert.equal(data, { message: 'This is a test of your endpoint.' });
});

test('type and data may be given, and the catalogue may have an example', async () => {
  const endpointId = await makeEndpoint();
  const send = async (body: object | string) =>
    (await api.call('POST', `${path}/endpoints/${endpointId}/test`, body)).body.data.uid;
  const given = await send('{"event_type": "order.paid", "data": {"price" : 1.10}}');
  assert.equal(await dataOf(given), { type: 'order.paid', endpointId, data: { price: 1.1 } });
  const [{ data } = { data: '' }] = await api.db.rows<{ data: string }>(
    'select data from events where id = $1',
    [given],
  );
  assert.is(data, '{"price" : 1.10}', 'byte for byte');
  const schema = { type: 'object', examples: [{ amount: 7 }] };
  const { uid } = (
    await api.call('POST', `${path}/event-types`, { name: 'order.paid', json_schema: schema })
  ).body.data;
  assert.equal((await dataOf(await send({ event_type: 'order.paid' }))).data, { amount: 7 });
  await api.call('PUT', `${path}/event-types/${uid}`, { example: { amount: 8 } });
  assert.equal((await dataOf(await send({ event_type: 'order.paid' }))).data, { amount: 8 });
});

test('an inactive endpoint is refused, a paused one is said to hold the event', async () => {
  const endpointId = await makeEndpoint();
  await api.call('PUT', `${path}/endpoints/${endpointId}/pause`);
  const paused = await api.call('POST', `${path}/endpoints/${endpointId}/test`, {});
  assert.equal([paused.status, /activated/.test(paused.body.message)], [201, true]);
  await api.db.rows(`update endpoints set status = 'inactive' where id = $1`, [endpointId]);
  const inactive = await api.call('POST', `${path}/endpoints/${endpointId}/test`, {});
  assert.equal([inactive.status, inactive.body.code], [409, 'conflict']);
  assert.is((await api.call('POST', `${path}/endpoints/${newId()}/test`, {})).status, 404);
});

test('the key of the request is not that of the test event', async () => {
  const endpointId = await makeEndpoint();
  const headers = { 'idempotency-key': 'order-4711' };
  const sent = await api.call('POST', `${path}/endpoints/${endpointId}/test`, {}, { headers });
  assert.is(sent.status, 201, sent.text);
  const event = { event_type: 'order.paid', data: {}, idempotency_key: 'order-4711' };
  const { status, body } = await api.call('POST', `${path}/events`, event);
  assert.equal([status, body.data.duplicate], [201, false]);
});

test('test events have a limit of their own, and take nothing of events_per_second', async () => {
  const slow = await startApi({ file: { limits: { events_per_second: 1 } } });
  try {
    const { path, key } = await makeProject(slow);
    const endpoint = { name: 'e', url: 'https://a.example.com', owner_id: 'acme' };
    const { uid } = (await slow.call('POST', `${path}/endpoints`, endpoint)).body.data;
    const link = { name: 'acme', owner_id: 'acme' };
    const { token } = (await slow.call('POST', `${path}/portal-links`, link)).body.data;
    const send = () => slow.call('POST', `${path}/endpoints/${uid}/test`, {}, { key: token });
    const codes = (await Promise.all(Array.from({ length: 30 }, send))).map(
      ({ body }) => body.code,
    );
    assert.ok(codes.filter((it) => it === undefined).length >= 20, codes.join());
    assert.ok(codes.includes('too_many_test_events'), codes.join());
    const event = { event_type: 'order.paid', data: {} };
    const posted = await slow.call('POST', `${path}/events`, event, { key });
    assert.is(posted.status, 201, posted.text);
  } finally {
    await slow.close();
  }
});

test.run();
