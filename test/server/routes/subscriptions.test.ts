import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { readSnapshot } from '#store/config/snapshot';
import { makeProject, mistakes, startApi, type Api } from '../api.js';

const subscriptions = suite('server/routes/subscriptions');

let api: Api;
let path: string;
let endpointId: string;
subscriptions.before(async () => {
  api = await startApi();
  ({ path } = await makeProject(api));
  endpointId = (await api.call('POST', `${path}/endpoints`, { name: 'shop', url: 'https://example.com' })).body.data.uid;
});
subscriptions.after(() => api.close());

const create = (fields: Record<string, unknown> = {}) =>
  api.call('POST', `${path}/subscriptions`, { name: 'all', endpoint_id: endpointId, ...fields });

subscriptions('a subscription is for every event type unless it names some', async () => {
  const { status, body } = await create();
  assert.is(status, 201);
  assert.equal(body.data.filter_config, { event_types: ['*'], filter: { headers: {}, body: {} } });
  assert.equal((await api.call('GET', `${path}/subscriptions/${body.data.uid}`)).body.data, body.data);
});

subscriptions('what agents read is what was set', async () => {
  const filter = { body: { amount: { $gte: 100 }, $or: [{ country: 'DE' }, { country: 'FR' }] }, headers: { 'x-tenant': 'acme' } };
  const { body } = await create({ filter_config: { event_types: ['order.*', 'refund'], filter } });
  const { subscriptions: read } = await readSnapshot(api.db.pool);
  const record = read.find(({ id }) => id === body.data.uid);
  assert.equal([record?.event_types, record?.filter, record?.endpoint_id], [['order.*', 'refund'], filter, endpointId]);
});

subscriptions('a change touches what is given', async () => {
  const { uid } = (await create({ filter_config: { event_types: ['a'], filter: { body: { a: 1 } } } })).body.data;
  const { body } = await api.call('PUT', `${path}/subscriptions/${uid}`, { filter_config: { event_types: ['b'] } });
  assert.equal([body.data.name, body.data.filter_config.event_types, body.data.filter_config.filter.body], ['all', ['b'], { a: 1 }]);
  const emptied = await api.call('PUT', `${path}/subscriptions/${uid}`, { filter_config: { filter: {} } });
  assert.equal(emptied.body.data.filter_config.filter, { headers: {}, body: {} });
});

subscriptions('mistakes are listed with their places', async () => {
  const other = await makeProject(api);
  const foreign = (await api.call('POST', `${other.path}/endpoints`, { name: 'x', url: 'https://example.com' })).body.data.uid;
  for (const id of [newId(), foreign])
    assert.equal(mistakes(await create({ endpoint_id: id })), ['endpoint_id is not an endpoint of this project']);
  assert.equal(mistakes(await create({ filter_config: { event_types: ['*.paid', 'order*', 'a\nb'] } })), [
    'filter_config.event_types.2 must not contain control characters',
  ]);
  assert.equal(mistakes(await create({ filter_config: { event_types: ['*.paid', 'order*', 'order.*', '*'] } })), [
    'filter_config.event_types.0 may have * alone or at the end after a dot, as in order.*',
    'filter_config.event_types.1 may have * alone or at the end after a dot, as in order.*',
  ]);
  assert.equal(mistakes(await create({ filter_config: { event_types: [] } })), ['filter_config.event_types must not be empty']);
  assert.match(
    mistakes(await create({ filter_config: { filter: { body: { a: { $regex: '.*' } } } } })).join(),
    /filter_config\.filter\.body \$regex is not an operator/,
  );
  assert.match(
    mistakes(await create({ filter_config: { filter: { headers: { $or: 1 } } } })).join(),
    /filter_config\.filter\.headers \$or takes a list/,
  );
});

subscriptions('subscriptions are listed by endpoint, and gone when deleted', async () => {
  const { uid: second } = (await api.call('POST', `${path}/endpoints`, { name: 'bank', url: 'https://example.com' })).body.data;
  const { uid } = (await create({ endpoint_id: second })).body.data;
  const list = async () =>
    (await api.call('GET', `${path}/subscriptions?endpointId=${second}`)).body.data.content.map((it: { uid: string }) => it.uid);
  assert.equal(await list(), [uid]);
  assert.is((await api.call('DELETE', `${path}/subscriptions/${uid}`)).status, 200);
  assert.is((await api.call('DELETE', `${path}/subscriptions/${uid}`)).status, 404);
  assert.is((await api.call('PUT', `${path}/subscriptions/${uid}`, { name: 'x' })).status, 404);
  assert.equal(await list(), []);
});

subscriptions.run();
