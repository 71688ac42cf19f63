import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { deleteEndpoint, setEndpointStatus } from '#store/config/endpoints';
import {
  findEventDelivery,
  listDeliveryAttempts,
  listEventDeliveries,
  resendEventDelivery,
  type EventDeliveryFilter,
} from '#store/deliveries/delivery-log';
import { settleDeliveries } from '#store/deliveries/settle-deliveries';
import type { PageRequest } from '#store/pagination/page';
import { until } from '../../support/until.js';
import { around } from '../batches.js';
import { makeDelivery, makeEndpoint, makeEvents, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const log = suite('store/deliveries/delivery-log');

const db = await migratedDatabase();
log.after(() => db.close());

const first: PageRequest = { perPage: 20, direction: 'next', sort: 'DESC' };

async function setUp() {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  const { id: otherEndpointId } = await makeEndpoint(db, projectId, { name: 'bank' });
  const now = Date.now();
  // Two events in the same millisecond: their deliveries share it too.
  const [eventId, twinId, olderId] = (await makeEvents(db, projectId, [
    { atMs: now },
    { atMs: now },
    { atMs: now - 90_000_000 },
  ])) as [string, string, string];
  const deliveries = {
    a: await makeDelivery(db, { projectId, eventId, endpointId, status: 'success', attempts: 1 }),
    b: await makeDelivery(db, {
      projectId,
      eventId,
      endpointId: otherEndpointId,
      status: 'retry',
      attempts: 2,
    }),
    twin: await makeDelivery(db, {
      projectId,
      eventId: twinId,
      endpointId,
      status: 'failure',
      attempts: 11,
    }),
    older: await makeDelivery(db, { projectId, eventId: olderId, endpointId, status: 'scheduled' }),
  };
  return { projectId, endpointId, otherEndpointId, eventId, now, ...deliveries };
}

/** Returns the reference to a delivery to the first endpoint. */
const ref = (it: { projectId: string; endpointId: string }, id: string) => ({
  project_id: it.projectId,
  id,
  endpoint_id: it.endpointId,
});

log(
  'deliveries are listed with their event and endpoint, and filtered by event, endpoint, status and time',
  async () => {
    const it = await setUp();
    const listed = async (filter: EventDeliveryFilter) =>
      (await listEventDeliveries(db.planes, it.projectId, filter, first)).content
        .map(({ id }) => id)
        .sort();
    assert.equal(await listed({}), [it.a, it.b, it.twin, it.older].sort());
    assert.equal(await listed({ eventId: it.eventId }), [it.a, it.b].sort());
    assert.equal(await listed({ endpointId: it.endpointId }), [it.a, it.twin, it.older].sort());
    assert.equal(await listed({ statuses: ['failure', 'retry'] }), [it.b, it.twin].sort());
    assert.equal(await listed({ endpointId: it.endpointId, statuses: ['success'] }), [it.a]);
    assert.equal(await listed({ from: new Date(it.now) }), [it.a, it.b, it.twin].sort());
    assert.equal(await listed({ eventId: newId() }), []);
    const row = await findEventDelivery(db.planes, it.projectId, it.b);
    assert.equal(
      [row?.event_type, row?.endpoint_name, row?.endpoint_url, row?.endpoint_status],
      ['order.paid', 'bank', 'https://example.com/hooks', 'active'],
    );
  },
);

log('a delivery still shows its endpoint when that was deleted', async () => {
  const it = await setUp();
  await deleteEndpoint(db.knex, it.projectId, it.endpointId);
  const row = await findEventDelivery(db.planes, it.projectId, it.a);
  assert.equal([row?.endpoint_name, row?.endpoint_status], ['shop', 'deleted']);
});

log('attempts are listed newest first and found one by one', async () => {
  const it = await setUp();
  const attempts = [newId(Date.now() - 2000), newId(Date.now())];
  for (const [index, id] of attempts.entries()) {
    await db.rows(
      `with d as materialized (select * from event_deliveries where project_id = $1 and id = $2)
       insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, requested_at, endpoint_id, duration_ms, number, http_status, url)
       select project_id, id, $3, occurred_at, now(), endpoint_id, 12, $4, 200, 'https://example.com' from d`,
      [it.projectId, it.a, id, index + 1],
    );
  }
  assert.equal(
    (await listDeliveryAttempts(db.pool, it.projectId, it.a)).map(({ number }) => number),
    [2, 1],
  );
  assert.is((await listDeliveryAttempts(db.pool, it.projectId, it.a, attempts[0]))[0]?.number, 1);
  assert.equal(await listDeliveryAttempts(db.pool, it.projectId, it.b, attempts[0]), []);
});

log('a resend makes a delivery that is over due and tells the agents', async () => {
  const it = await setUp();
  const listener = await db.connect();
  const channels: string[] = [];
  listener.on('notification', ({ channel }) => channels.push(channel));
  await listener.query('listen gateway_due');
  assert.is(await resendEventDelivery(db.planes, ref(it, it.twin), ['failure', 'discarded']), true);
  const row = await findEventDelivery(db.planes, it.projectId, it.twin);
  assert.equal([row?.status, row?.attempts], ['scheduled', 11]);
  assert.ok((row?.next_attempt_at as Date) <= new Date(Date.now() + 60_000));
  await until('a notification', () => channels.includes('gateway_due'));
  await listener.end();
});

log('a resend leaves deliveries alone that are in another status', async () => {
  const it = await setUp();
  assert.is(await resendEventDelivery(db.planes, ref(it, it.a), ['failure', 'discarded']), false);
  assert.is((await findEventDelivery(db.planes, it.projectId, it.a))?.status, 'success');
});

log('a resend to an endpoint that is paused meanwhile is held in the end', async () => {
  const it = await setUp();
  const { projectId, endpointId } = it;
  const before = async () => {
    await setEndpointStatus(db.knex, projectId, endpointId, { status: 'paused', reason: null });
    await settleDeliveries(db.planes, { projectId, endpointId });
  };
  const data = around(db.pool, 'resend-event-delivery', { before });
  const delivery = { project_id: projectId, endpoint_id: endpointId, id: it.twin };
  await resendEventDelivery({ control: db.pool, data }, delivery, ['failure']);
  assert.is((await findEventDelivery(db.planes, projectId, it.twin))?.next_attempt_at, Infinity);
});

log('a resend to a paused endpoint is held', async () => {
  const it = await setUp();
  await setEndpointStatus(db.knex, it.projectId, it.endpointId, { status: 'paused', reason: null });
  await resendEventDelivery(db.planes, ref(it, it.twin), ['failure']);
  assert.is((await findEventDelivery(db.planes, it.projectId, it.twin))?.next_attempt_at, Infinity);
});

log.run();
