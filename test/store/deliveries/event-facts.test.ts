import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import {
  explainDeliveries,
  findEventWithNames,
  findOtherRecords,
  keyExpiry,
  readRoutingBacklog,
} from '#store/deliveries/event-facts';
import { readRouting } from '#store/config/routing-records';
import { bothPlanes } from '#store/postgres/planes';
import { genericPlan, noting, onPostgres, readWhole } from '../batches.js';
import { createEvent, makeDelivery, makeEndpoint, makeEvents, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const explain = suite('store/deliveries/event-facts');

let db: Awaited<ReturnType<typeof migratedDatabase>>;
explain.before(async () => {
  db = await migratedDatabase();
});
explain.after(() => db.close());

explain(
  'deliveries of other events of the same millisecond are left out, and what succeeded comes last',
  async () => {
    const project = await makeProject(db);
    const atMs = Date.now();
    const [mine, other] = await makeEvents(db, project.id, [{ atMs }, { atMs }]);
    const endpoints = [
      await makeEndpoint(db, project.id, { name: 'a' }),
      await makeEndpoint(db, project.id, { name: 'b' }),
    ];
    const success = await makeDelivery(db, {
      projectId: project.id,
      eventId: mine!,
      endpointId: endpoints[0]!.id,
      status: 'success',
      attempts: 1,
    });
    const retry = await makeDelivery(db, {
      projectId: project.id,
      eventId: mine!,
      endpointId: endpoints[1]!.id,
      status: 'retry',
      attempts: 1,
    });
    await makeDelivery(db, {
      projectId: project.id,
      eventId: other!,
      endpointId: endpoints[0]!.id,
    });
    const { first, counts } = await explainDeliveries(db.planes, {
      project_id: project.id,
      id: mine!,
    });
    assert.equal(
      first.map(({ id, endpoint_name, attempted_at }) => [id, endpoint_name, attempted_at]),
      [
        [retry, 'b', null],
        [success, 'a', null],
      ],
    );
    assert.equal(counts, { success: 1, retry: 1 });
  },
);

explain(
  'an idempotency key is held by the event that was first, until its window is over',
  async () => {
    const { id: project_id } = await makeProject(db);
    const event = {
      projectId: project_id,
      eventType: 'a',
      messageType: 'single',
      endpointId: null,
      ownerId: null,
      headers: {},
      data: '{}',
    } as const;
    const { id } = await createEvent(db.pool, { ...event, idempotencyKey: 'k' }, 3600);
    const until = await keyExpiry(db.pool, { project_id, id, idempotency_key: 'k' });
    assert.ok(until !== null && until.getTime() > Date.now());
    assert.is(await keyExpiry(db.pool, { project_id, id: newId(), idempotency_key: 'k' }), null);
    await db.rows(`update idempotency_keys set expires_at = now() where event_id = $1`, [id]);
    assert.is(await keyExpiry(db.pool, { project_id, id, idempotency_key: 'k' }), null);
  },
);

onPostgres(explain)('no statement reads a table of the way of a message whole', async () => {
  const { pool, texts } = noting(db);
  const planes = bothPlanes({ pool });
  const id = newId();
  await findEventWithNames(planes, id, id);
  await explainDeliveries(planes, { project_id: id, id });
  await findOtherRecords(planes, id, id);
  await readRoutingBacklog(pool, new Date());
  await keyExpiry(pool, { project_id: id, id, idempotency_key: 'k' });
  await readRouting(pool, id);
  assert.is(texts.size, 8);
  for (const text of texts) {
    const plan = await genericPlan(db, text);
    assert.equal(readWhole(plan), [], plan);
  }
});

explain.run();
