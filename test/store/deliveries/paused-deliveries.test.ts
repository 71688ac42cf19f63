import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { discardWaiting, pauseDeliveries, resumeDeliveries } from '#store/deliveries/paused-deliveries';
import { until } from '../../support/until.js';
import { genericPlan, noting } from '../batches.js';
import { makeDelivery, makeEndpoint, makeEvents, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const held = suite('store/deliveries/paused-deliveries');

const db = await migratedDatabase();
held.after(() => db.close());

const STATUSES = ['scheduled', 'retry', 'processing', 'success', 'failure', 'discarded'];

/** A delivery of each status for each of two endpoints. */
async function setUp() {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  const { id: otherId } = await makeEndpoint(db, projectId);
  const events = await makeEvents(
    db,
    projectId,
    STATUSES.map((_, n) => ({ atMs: Date.now() - n * 50_000_000 })),
  );
  for (const id of [endpointId, otherId]) {
    for (const [n, status] of STATUSES.entries()) await makeDelivery(db, { projectId, eventId: events[n]!, endpointId: id, status });
  }
  const state = async (id: string) =>
    (
      await db.rows<{ line: string }>(
        `select status || coalesce(case when next_attempt_at = 'infinity' then ' held' when next_attempt_at <= now() then ' due' end, '') as line
         from event_deliveries where project_id = $1 and endpoint_id = $2 order by status`,
        [projectId, id],
      )
    ).map(({ line }) => line);
  return { projectId, endpointId, otherId, state };
}

const UNTOUCHED = ['scheduled due', 'processing', 'retry due', 'success', 'failure', 'discarded'];

held('holding takes the waiting deliveries of one endpoint out of the queue, releasing puts them back and tells the agents', async () => {
  const { projectId, endpointId, otherId, state } = await setUp();
  assert.is(await pauseDeliveries(db.pool, { projectId, endpointId }), 2);
  assert.equal(await state(endpointId), ['scheduled held', 'processing', 'retry held', 'success', 'failure', 'discarded']);
  assert.is(await pauseDeliveries(db.pool, { projectId, endpointId }), 0);

  const listener = await db.connect();
  const channels: string[] = [];
  listener.on('notification', ({ channel }) => channels.push(channel));
  await listener.query('listen gateway_due');
  assert.is(await resumeDeliveries(db.pool, { projectId, endpointId }), 2);
  assert.equal(await state(endpointId), UNTOUCHED);
  assert.equal(await state(otherId), UNTOUCHED);
  await until('a notification', () => channels.includes('gateway_due'));
  await listener.end();
});

held('discarding ends the waiting deliveries of one endpoint with the reason, held ones too', async () => {
  const { projectId, endpointId, otherId, state } = await setUp();
  await pauseDeliveries(db.pool, { projectId, endpointId });
  assert.is(await discardWaiting(db.pool, { projectId, endpointId }, 'The endpoint was deleted.'), 2);
  assert.equal((await state(endpointId)).filter((line) => line === 'discarded').length, 3);
  assert.equal(await state(otherId), UNTOUCHED);
  const reasons = await db.rows(`select distinct reason from event_deliveries where project_id = $1 and reason is not null`, [projectId]);
  assert.equal(reasons, [{ reason: 'The endpoint was deleted.' }]);
});

held('discarding a whole project leaves other projects alone', async () => {
  const one = await setUp();
  const other = await setUp();
  assert.is(await discardWaiting(db.pool, { projectId: one.projectId }, 'The project was deleted.'), 4);
  assert.equal(await other.state(other.endpointId), UNTOUCHED);
});

held('more deliveries than one statement changes are all changed', async () => {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  await db.rows(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, next_attempt_at)
     select $1, gen_random_uuid(), now(), gen_random_uuid(), $2, 'scheduled', now() from generate_series(1, 12000)`,
    [projectId, endpointId],
  );
  assert.is(await pauseDeliveries(db.pool, { projectId, endpointId }), 12_000);
  assert.is(await resumeDeliveries(db.pool, { projectId, endpointId }), 12_000);
});

held('no batch reads the history of an endpoint, or a project once for each row', async () => {
  const { projectId, endpointId } = await setUp();
  const { pool, texts } = noting(db);
  await pauseDeliveries(pool, { projectId, endpointId });
  await resumeDeliveries(pool, { projectId, endpointId });
  await discardWaiting(pool, { projectId, endpointId }, 'The endpoint was deleted.');
  await discardWaiting(pool, { projectId }, 'The project was deleted.');
  const own = [...texts].filter((text) => text.includes('event_deliveries'));
  assert.is(own.length, 4);
  for (const text of own) {
    const plan = await genericPlan(db, text);
    assert.not.match(plan, /Index Cond: .*\(endpoint_id = \$/, plan);
    assert.not.match(plan, /\(project_id = w\.project_id\) AND \(id = w\.id\)\)$/m, plan);
  }
});

held.run();
