import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeDelivery } from '../../store/made.js';
import { makeProject, startApi, type Api } from '../api.js';

const explain = suite('server/routes/explain');

let api: Api;
explain.before(async () => {
  api = await startApi({ file: { ingest: { inline_routing: false } } });
});
explain.after(() => api.close());

async function setUp() {
  const project = await makeProject(api);
  const create = async (path: string, body: unknown) =>
    (await api.call('POST', `${project.path}${path}`, body)).body.data.uid as string;
  const endpointId = await create('/endpoints', {
    name: 'shop',
    url: 'https://example.com/hooks',
    owner_id: 'acme',
  });
  const subscribe = (name: string, filter_config: object) =>
    create('/subscriptions', { name, endpoint_id: endpointId, filter_config });
  return { ...project, create, endpointId, subscribe };
}

const order = { event_type: 'order.paid', data: { amount: 50, note: 'x'.repeat(5_000) } };

explain('it tells the rule, the deliveries, and why each subscription does not match', async () => {
  const { path, id: projectId, create, endpointId, subscribe } = await setUp();
  await subscribe('large', { filter: { body: { amount: { $gte: 100 } } } });
  await subscribe('refunds', { event_types: ['refund.*'] });
  await subscribe('notes', { filter: { body: { $or: [{ amount: 1 }, { amount: 2 }] } } });
  await subscribe('all', {});
  const id = await create('/events', order);
  const deliveryId = await makeDelivery(api.db, {
    projectId,
    eventId: id,
    endpointId,
    status: 'retry',
    attempts: 1,
  });
  const { status, body } = await api.call('GET', `${path}/events/${id}/explain`);
  const {
    event,
    rule,
    rule_sentence: sentence,
    deliveries,
    subscriptions,
    now,
    ...rest
  } = body.data;
  assert.equal(
    [status, event.uid, event.status, rule, sentence.includes('subscriptions')],
    [200, id, 'pending', 'subscriptions', true],
  );
  assert.equal(
    deliveries.map((it: { uid: string; status: string; endpoint_name: string }) => [
      it.uid,
      it.status,
      it.endpoint_name,
    ]),
    [[deliveryId, 'retry', 'shop']],
  );
  assert.equal(
    [rest.delivery_counts, rest.agents, rest.pending_before, rest.subscription_count],
    [{ retry: 1 }, 0, 0, 4],
  );
  const mismatches = Object.fromEntries(
    subscriptions.map((it: { name: string; mismatch: unknown }) => [it.name, it.mismatch]),
  );
  assert.is(subscriptions[0].name, 'all', 'what matches comes first');
  assert.equal(mismatches.large, {
    part: 'body',
    path: 'amount',
    operator: '$gte',
    wanted: 100,
    found: 50,
    sentence: 'the filter requires amount to be at least 100, but it is 50',
  });
  assert.equal(mismatches.refunds, {
    part: 'event_types',
    wanted: ['refund.*'],
    found: 'order.paid',
    sentence: 'the event type order.paid does not match refund.*',
  });
  assert.ok(mismatches.notes.found.length < 1_100, 'the data of the event is cut');
  assert.equal([now.outcome, now.endpoint_ids, now.endpoint_count], ['routed', [endpointId], 1]);
});

explain('with an endpoint it tells of the subscriptions of that endpoint', async () => {
  const { path, create, subscribe } = await setUp();
  await subscribe('all', {});
  const other = await create('/endpoints', { name: 'other', url: 'https://example.com' });
  const own = await create('/subscriptions', {
    name: 'own',
    endpoint_id: other,
    filter_config: { event_types: ['refund'] },
  });
  const id = await create('/events', order);
  const { subscriptions, subscription_count: count } = (
    await api.call('GET', `${path}/events/${id}/explain?endpointId=${other}`)
  ).body.data;
  assert.equal([subscriptions.map((it: { uid: string }) => it.uid), count], [[own], 1]);
});

explain('an event of another project is not there, and what else has the id is said', async () => {
  const [mine, theirs] = [await setUp(), await setUp()];
  const id = await theirs.create('/events', order);
  const eventId = await mine.create('/events', order);
  const deliveryId = await makeDelivery(api.db, {
    projectId: mine.id,
    eventId,
    endpointId: mine.endpointId,
  });
  const foreign = await api.call('GET', `${mine.path}/events/${id}/explain`);
  assert.equal([foreign.status, foreign.body.code], [404, 'not_found']);
  const delivery = await api.call('GET', `${mine.path}/events/${deliveryId}/explain`);
  assert.equal(
    [delivery.status, delivery.body.code, delivery.body.message.includes(eventId)],
    [404, 'event_unknown', true],
  );
  const fromOther = await api.call('GET', `${theirs.path}/events/${deliveryId}/explain`);
  assert.equal([fromOther.status, /event delivery/.test(fromOther.body.fix!)], [404, false]);
});

explain('an owner that no endpoint has may be a slip of another one', async () => {
  const { path, id: projectId, create, endpointId } = await setUp();
  const id = await create('/events', order);
  await api.db.rows(
    `update events set owner_id = 'acne', status = 'failed', outcome = 'unknown_owner' where id = $1`,
    [id],
  );
  const { meant, rule, event, now } = (await api.call('GET', `${path}/events/${id}/explain`)).body
    .data;
  assert.equal(
    [meant, rule, event.outcome, now.outcome, now.endpoint_count],
    ['acme', 'owner_id', 'unknown_owner', 'unknown_owner', 0],
  );
  await api.db.rows(`update events set owner_id = 'acme' where id = $1 and project_id = $2`, [
    id,
    projectId,
  ]);
  const again = (await api.call('GET', `${path}/events/${id}/explain`)).body.data;
  assert.equal([again.meant, again.now.endpoint_ids], [null, [endpointId]]);
});

explain('of ten thousand endpoints with subscriptions it answers within its bounds', async () => {
  const { path, id: projectId, create } = await setUp();
  await api.db.rows(
    `with e as (insert into endpoints (project_id, id, name, url, owner_id, description, secrets, timeout_ms)
       select $1, gen_random_uuid(), 'endpoint ' || n, 'https://example.com/hooks/' || n, 'owner ' || n, '', '[]', 10000 from generate_series(1, 10000) n returning id)
     insert into subscriptions (project_id, id, name, endpoint_id, event_types, filter)
       select $1, gen_random_uuid(), 'subscription', id, '{order.*}', '{"body": {"amount": {"$gte": 100}}}' from e`,
    [projectId],
  );
  const id = await create('/events', order);
  const broadcast = (await api.call('POST', `${path}/events/broadcast`, order)).body.data.uid;
  const startedAtMs = performance.now();
  const answer = await api.call('GET', `${path}/events/${id}/explain`);
  console.log(
    `explained in ${Math.round(performance.now() - startedAtMs)} ms, ${answer.text.length} bytes`,
  );
  const { subscriptions, subscription_count: count, now } = answer.body.data;
  assert.equal([subscriptions.length, count, now], [100, 10_000, null]);
  const one = await api.call(
    'GET',
    `${path}/events/${id}/explain?endpointId=${subscriptions[7].endpoint_id}`,
  );
  assert.equal(
    [one.body.data.subscription_count, one.body.data.now.outcome],
    [1, 'no_subscription'],
  );
  const all = await api.call('GET', `${path}/events/${broadcast}/explain`);
  assert.equal(
    [all.body.data.now.endpoint_ids.length, all.body.data.now.endpoint_count],
    [1_000, 10_001],
  );
});

explain.run();
