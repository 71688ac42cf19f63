import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { insertSubscription } from '#store/config/subscriptions';
import { makeDelivery, makeEndpoint, makeEvents } from '../../../store/made.js';
import { makeProject, startApi, type Api } from '../../api.js';
import type { BreakerRecord } from '#store/kv/circuit-breakers';
import { WAIT_REASONS } from '#store/deliveries/postponed-deliveries';
import { decodeValue, KV_VERSIONS } from '#store/kv/versions';

const deliveries = suite('server/routes/deliveries/event-deliveries');

let api: Api;
deliveries.before(async () => {
  api = await startApi();
});
deliveries.after(() => api.close());

async function setUp(status: string, attempts = 1) {
  const { path, id: projectId } = await makeProject(api);
  const { id: endpointId } = await makeEndpoint(api.db, projectId);
  const [eventId] = (await makeEvents(api.db, projectId, [{ atMs: Date.now() }])) as [string];
  const id = await makeDelivery(api.db, { projectId, eventId, endpointId, status, attempts });
  return { path: `${path}/eventdeliveries`, projectPath: path, projectId, endpointId, eventId, id };
}

deliveries('a delivery shows its event, endpoint and state', async () => {
  const it = await setUp('failure', 11);
  const { body } = await api.call('GET', `${it.path}/${it.id}`);
  const {
    uid,
    status,
    attempts,
    event_metadata: event,
    endpoint_metadata: endpoint,
    next_attempt_at: next,
  } = body.data;
  assert.equal(
    [uid, status, attempts, event, endpoint, next],
    [
      it.id,
      'failure',
      11,
      { uid: it.eventId, event_type: 'order.paid' },
      { uid: it.endpointId, name: 'shop', url: 'https://example.com/hooks', status: 'active' },
      null,
    ],
  );
});

deliveries(
  'the event of a delivery shows what its endpoint gets: what the function of the subscription made, once it has',
  async () => {
    const it = await setUp('retry');
    const { id: subscriptionId } = await insertSubscription(api.db.knex, it.projectId, {
      name: 'masked',
      endpoint_id: it.endpointId,
      event_types: ['*'],
      filter: null,
      function: 'function transform() { return {}; }',
    });
    const change = (set: string) =>
      api.db.rows(`update event_deliveries set ${set} where id = $1`, [it.id]);
    const shown = async () => {
      const { text, body } = await api.call('GET', `${it.path}/${it.id}/event`);
      const { body: delivery } = await api.call('GET', `${it.path}/${it.id}`);
      assert.is(delivery.data.is_transformed, body.data.is_transformed);
      return [
        /"x-a":"b"},"data":(.*?),"is_transformed"/.exec(text)?.[1],
        body.data.is_transformed,
        body.data.data_bytes,
      ];
    };
    assert.equal(await shown(), ['{"n":1}', false, 7]);
    await change(`subscription_id = '${subscriptionId}'`);
    assert.equal(await shown(), ['null', false, 0]);
    await change(`transformed_data = '{"n":1.50}'`);
    assert.equal(await shown(), ['{"n":1.50}', true, 10]);
    // Delivered before the function existed.
    await change(`transformed_data = null, status = 'success', next_attempt_at = null`);
    assert.equal(await shown(), ['{"n":1}', false, 7]);
  },
);

deliveries('a delivery says by a code why it waits', async () => {
  const it = await setUp('retry');
  const waits = async (set: string) => {
    await api.db.rows(`update event_deliveries set ${set} where id = $1`, [it.id]);
    const { waits_for } = (await api.call('GET', `${it.path}/${it.id}`)).body.data;
    return waits_for as string | null;
  };
  const later = `next_attempt_at = now() + interval '1 hour'`;
  assert.equal(
    [
      await waits(`${later}, reason = 'It answered 503.'`),
      await waits(`${later}, reason = '${WAIT_REASONS.breaker}'`),
      await waits(`status = 'scheduled', ${later}, reason = '${WAIT_REASONS.rate_limit}'`),
      await waits(`next_attempt_at = now(), reason = null`),
      await waits(`next_attempt_at = 'infinity'`),
      await waits(`status = 'failure', next_attempt_at = null`),
    ],
    ['retry', 'breaker', 'rate_limit', null, 'paused', null],
  );
});

deliveries('deliveries are filtered by event, endpoint and several statuses', async () => {
  const it = await setUp('failure');
  const count = async (query: string) =>
    (await api.call('GET', `${it.path}?${query}`)).body.data.content.length;
  assert.is(await count(''), 1);
  assert.is(await count(`eventId=${it.eventId}&endpointId=${it.endpointId}`), 1);
  assert.is(await count('status=failure'), 1);
  assert.is(await count('status=success&status=failure'), 1);
  assert.is(await count('status=success&status=retry'), 0);
  assert.is(await count(`endpointId=${newId()}`), 0);
});

deliveries(
  'deliveries are filtered by the type of their event, and found by the start of their id',
  async () => {
    const it = await setUp('failure');
    await api.db.rows(
      `update event_deliveries set event_type = 'order.paid' where project_id = $1`,
      [it.projectId],
    );
    const list = (query: string) => api.call('GET', `${it.path}?${query}`);
    const count = async (query: string) => (await list(query)).body.data.content.length;
    assert.equal(
      [
        await count('event_type=order.paid&status=failure'),
        await count('event_type=order.refunded'),
      ],
      [1, 0],
    );
    assert.equal(
      [
        await count(`event_type=order.paid&endpointId=${it.endpointId}&eventId=${it.eventId}`),
        await count('event_type=x&status=processing'),
      ],
      [1, 0],
    );
    assert.equal(
      [
        await count(`query=${it.id.slice(0, 13)}`),
        await count(`query=${it.id}&status=success`),
        await count('query=00000000'),
      ],
      [1, 0, 0],
    );
    const both = await list(`event_type=order.paid&endpointId=${it.endpointId}`);
    assert.match(both.body.message, 'event_type: cannot be combined with endpointId');
    for (const query of ['0123456', 'order.paid', `${it.id}0`, 'zzzzzzzz'])
      assert.is((await list(`query=${query}`)).status, 422, query);
  },
);

deliveries('attempts are shown newest first with what came back', async () => {
  const it = await setUp('retry');
  const attemptId = newId();
  await api.db.rows(
    `insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, requested_at, endpoint_id, duration_ms, number, http_status, error_class, error, url, response_headers, response_body)
     select project_id, id, $3, occurred_at, now(), endpoint_id, 12, 1, 503, 'status', 'It answered 503.', 'https://example.com', '{"retry-after":"5"}', 'busy' from event_deliveries
     where project_id = $1 and id = $2`,
    [it.projectId, it.id, attemptId],
  );
  const { body } = await api.call('GET', `${it.path}/${it.id}/deliveryattempts`);
  const [attempt] = body.data.content;
  assert.equal(
    [
      attempt.uid,
      attempt.status,
      attempt.http_status,
      attempt.error_class,
      attempt.response_headers,
      attempt.response_body,
      attempt.duration_ms,
    ],
    [attemptId, false, 503, 'status', { 'retry-after': '5' }, 'busy', 12],
  );
  assert.equal(
    (await api.call('GET', `${it.path}/${it.id}/deliveryattempts/${attemptId}`)).body.data,
    attempt,
  );
  assert.is((await api.call('GET', `${it.path}/${it.id}/deliveryattempts/${newId()}`)).status, 404);
  assert.is((await api.call('GET', `${it.path}/${newId()}/deliveryattempts`)).status, 404);
});

deliveries('what failed or was discarded is sent again on request', async () => {
  for (const status of ['failure', 'discarded']) {
    const it = await setUp(status);
    const { status: code, body } = await api.call('PUT', `${it.path}/${it.id}/resend`);
    assert.equal([code, body.data.status, body.data.attempts], [200, 'scheduled', 1]);
    assert.ok(body.data.next_attempt_at);
  }
});

deliveries('what was delivered is sent again only by force', async () => {
  const it = await setUp('success');
  const refused = await api.call('PUT', `${it.path}/${it.id}/resend`);
  assert.equal([refused.status, refused.body.code], [409, 'conflict']);
  assert.match(refused.body.fix ?? '', 'force=true');
  assert.is(
    (await api.call('PUT', `${it.path}/${it.id}/resend?force=true`)).body.data.status,
    'scheduled',
  );
});

deliveries('what is being sent is left alone, by force too', async () => {
  const it = await setUp('processing');
  const { status: code, body } = await api.call('PUT', `${it.path}/${it.id}/resend?force=true`);
  assert.is(code, 409);
  assert.match(body.message, 'an agent is sending');
  assert.is((await api.call('GET', `${it.path}/${it.id}`)).body.data.status, 'processing');
});

const dueInMs = async (id: string) =>
  (
    await api.db.rows<{ ms: number }>(
      `select (extract(epoch from next_attempt_at - now()) * 1000)::float8 as ms from event_deliveries where id = $1`,
      [id],
    )
  )[0]!.ms;
const putOff = (id: string, at = `now() + interval '1 hour'`) =>
  api.db.rows(`update event_deliveries set next_attempt_at = ${at} where id = $1`, [id]);

deliveries('what waits is due at once, with the attempts it has left', async () => {
  for (const status of ['scheduled', 'retry']) {
    const it = await setUp(status);
    await putOff(it.id);
    const { status: code, body } = await api.call('PUT', `${it.path}/${it.id}/resend`);
    assert.equal([code, body.data.status, body.data.attempts], [200, status, 1]);
    assert.ok((await dueInMs(it.id)) <= 0);
    const dueAt = body.data.next_attempt_at;
    await api.call('PUT', `${it.path}/${it.id}/resend`);
    const again = await api.call('GET', `${it.path}/${it.id}`);
    assert.is(again.body.data.next_attempt_at, dueAt, 'what is due already keeps its place');
  }
});

deliveries('what a paused endpoint holds stays held', async () => {
  const it = await setUp('retry');
  await putOff(it.id, `'infinity'`);
  await api.db.rows(`update endpoints set status = 'paused' where id = $1`, [it.endpointId]);
  const { status, body } = await api.call('PUT', `${it.path}/${it.id}/resend`);
  assert.is(status, 409);
  assert.match(body.message, 'its endpoint is paused');
});

deliveries('behind an open circuit breaker, what is retried now is its probe', async () => {
  const it = await setUp('retry');
  await putOff(it.id);
  const map = api.kv.map('breakers');
  const open = { state: 'open', project_id: it.projectId, requests: 9, failures: 9, trips: 1 };
  const nowMs = Date.now();
  const times = { since_ms: nowMs, until_ms: nowMs + 600_000, forget_ms: nowMs + 900_000 };
  const to = JSON.stringify({ v: KV_VERSIONS.breaker, ...open, ...times });
  await map.change([{ field: it.endpointId, from: undefined, to }]);
  const { body } = await api.call('PUT', `${it.path}/${it.id}/resend`);
  assert.match(body.message, 'as the probe of its open circuit breaker');
  const record = decodeValue<BreakerRecord>(
    'breaker',
    (await map.all()).entries.get(it.endpointId),
  )!;
  assert.equal([record.state, record.trips], ['open', 1]);
  assert.ok(record.until_ms <= (await map.all()).nowMs, 'its probe is due');
  const ms = await dueInMs(it.id);
  assert.ok(ms > 0 && ms < 5_000, `the agents hear of it before the delivery is due: ${ms}`);
});

deliveries('nothing is sent again to an endpoint that is inactive or deleted', async () => {
  const inactive = await setUp('failure');
  await api.db.rows(`update endpoints set status = 'inactive' where id = $1`, [
    inactive.endpointId,
  ]);
  assert.match(
    (await api.call('PUT', `${inactive.path}/${inactive.id}/resend`)).body.message,
    'inactive',
  );
  const deleted = await setUp('failure');
  await api.call('DELETE', `${deleted.projectPath}/endpoints/${deleted.endpointId}`);
  assert.match(
    (await api.call('PUT', `${deleted.path}/${deleted.id}/resend`)).body.message,
    'deleted',
  );
});

deliveries.run();
