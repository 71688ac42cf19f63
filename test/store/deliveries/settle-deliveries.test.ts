import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deleteEndpoint, setEndpointStatus } from '#store/config/endpoints';
import { deleteProject } from '#store/config/projects';
import { settleDeliveries, sweepDeliveries } from '#store/deliveries/settle-deliveries';
import { applyRetention } from '#store/retention/retention';
import { bothPlanes } from '#store/postgres/planes';
import { until } from '../../support/until.js';
import { around, genericPlan, noting, onPostgres, readWhole } from '../batches.js';
import { makeDelivery, makeEndpoint, makeEvents, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const settled = suite('store/deliveries/settle-deliveries');

const db = await migratedDatabase();
settled.after(() => db.close());

const STATUSES = ['scheduled', 'retry', 'processing', 'success', 'failure', 'discarded'];
const HOUR_SECONDS = 3_600;

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
    for (const [n, status] of STATUSES.entries())
      await makeDelivery(db, { projectId, eventId: events[n]!, endpointId: id, status });
  }
  const state = async (id: string) =>
    (
      await db.rows<{ line: string }>(
        `select status || coalesce(case when next_attempt_at = 'infinity' then ' held' when next_attempt_at <= now() then ' due' end, '') as line
         from event_deliveries where project_id = $1 and endpoint_id = $2 order by status`,
        [projectId, id],
      )
    ).map(({ line }) => line);
  const become = async (status: 'active' | 'paused' | 'inactive') =>
    void (await setEndpointStatus(db.knex, projectId, endpointId, { status, reason: null }));
  /** Holds a waiting delivery, like an agent that considers the endpoint paused. */
  const holdAll = () =>
    db.rows(
      `update event_deliveries set next_attempt_at = 'infinity' where project_id = $1 and next_attempt_at is not null`,
      [projectId],
    );
  return { projectId, endpointId, otherId, state, become, holdAll };
}

const UNTOUCHED = ['scheduled due', 'processing', 'retry due', 'success', 'failure', 'discarded'];
const HELD = ['scheduled held', 'processing', 'retry held', 'success', 'failure', 'discarded'];
const DISCARDED = ['processing', 'success', 'failure', 'discarded', 'discarded', 'discarded'];

const sweep = () => sweepDeliveries(db.planes, HOUR_SECONDS);

settled(
  'what waits for a paused endpoint is held, and due with a notification to agents when it is active again',
  async () => {
    const { projectId, endpointId, otherId, state, become } = await setUp();
    await become('paused');
    assert.is(await settleDeliveries(db.planes, { projectId, endpointId }), 2);
    assert.equal(await state(endpointId), HELD);
    assert.is(await settleDeliveries(db.planes, { projectId, endpointId }), 0);

    const listener = await db.connect();
    const channels: string[] = [];
    listener.on('notification', ({ channel }) => channels.push(channel));
    await listener.query('listen gateway_due');
    await become('active');
    assert.is(await settleDeliveries(db.planes, { projectId, endpointId }), 2);
    assert.equal(await state(endpointId), UNTOUCHED);
    assert.equal(await state(otherId), UNTOUCHED);
    await until('a notification', () => channels.includes('gateway_due'));
    await listener.end();
  },
);

settled(
  'what waits for a deleted endpoint is discarded with the reason, held deliveries too',
  async () => {
    const { projectId, endpointId, otherId, state, become } = await setUp();
    await become('paused');
    await settleDeliveries(db.planes, { projectId, endpointId });
    await deleteEndpoint(db.knex, projectId, endpointId);
    assert.is(await settleDeliveries(db.planes, { projectId, endpointId }), 2);
    assert.equal(await state(endpointId), DISCARDED);
    assert.equal(await state(otherId), UNTOUCHED);
    const reasons = await db.rows(
      `select distinct reason from event_deliveries where project_id = $1 and reason is not null`,
      [projectId],
    );
    assert.equal(reasons, [{ reason: 'The endpoint was deleted.' }]);
  },
);

settled('of a whole project nothing is discarded unless it was deleted', async () => {
  const one = await setUp();
  const other = await setUp();
  assert.is(await settleDeliveries(db.planes, { projectId: one.projectId }), 0);
  await deleteProject(db.knex, one.projectId);
  assert.is(await settleDeliveries(db.planes, { projectId: one.projectId }), 4);
  assert.equal(await other.state(other.endpointId), UNTOUCHED);
});

settled('more deliveries than one statement changes are all changed', async () => {
  const { projectId, endpointId, become } = await setUp();
  await db.rows(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, next_attempt_at)
     select $1, gen_random_uuid(), now(), gen_random_uuid(), $2, 'scheduled', now() from generate_series(1, 12000)`,
    [projectId, endpointId],
  );
  for (const status of ['paused', 'active'] as const) {
    await become(status);
    assert.is(await settleDeliveries(db.planes, { projectId, endpointId }), 12_002);
  }
});

settled(
  'the sweep finishes what a kill has left of a deletion or an activation, and touches nothing else',
  async () => {
    const [active, paused, inactive, deleted, project] = [
      await setUp(),
      await setUp(),
      await setUp(),
      await setUp(),
      await setUp(),
    ];
    for (const one of [active, paused, inactive, deleted]) await one.become('paused');
    for (const { projectId, endpointId } of [active, paused, inactive, deleted])
      await settleDeliveries(db.planes, { projectId, endpointId });
    // Each process is killed after its first commit.
    await active.become('active');
    await inactive.become('inactive');
    await deleteEndpoint(db.knex, deleted.projectId, deleted.endpointId);
    await deleteProject(db.knex, project.projectId);
    assert.is(await sweep(), 2 + 2 + 2 + 4);
    assert.equal(await active.state(active.endpointId), UNTOUCHED);
    assert.equal(await paused.state(paused.endpointId), HELD);
    assert.equal(
      await inactive.state(inactive.endpointId),
      UNTOUCHED,
      'the agent that claims them discards them with the reason',
    );
    assert.equal(await deleted.state(deleted.endpointId), DISCARDED);
    for (const one of [active, paused, inactive, deleted])
      assert.equal(await one.state(one.otherId), UNTOUCHED);
    for (const id of [project.endpointId, project.otherId])
      assert.equal(await project.state(id), DISCARDED);
    assert.is(await sweep(), 0);
  },
);

settled(
  'what agents hold that do not know yet is swept, however long ago the endpoint was changed',
  async () => {
    const [active, deleted] = [await setUp(), await setUp()];
    await deleteEndpoint(db.knex, deleted.projectId, deleted.endpointId);
    await settleDeliveries(db.planes, deleted);
    await db.rows(`update endpoints set deleted_at = now() - interval '90 days' where id = $1`, [
      deleted.endpointId,
    ]);
    await deleted.holdAll();
    await active.holdAll();
    await db.rows(
      `update event_deliveries set status = 'retry', claimed_by = null, next_attempt_at = 'infinity' where endpoint_id = $1 and status = 'processing'`,
      [deleted.endpointId],
    );
    assert.is(await sweep(), 4 + 1 + 2);
    assert.equal(await active.state(active.endpointId), UNTOUCHED);
    assert.not.ok(
      (await deleted.state(deleted.endpointId)).some((line) => /held|processing/.test(line)),
    );
  },
);

settled(
  'a delivery that a late agent has held for a deleted endpoint does not keep its day',
  async () => {
    const { id: projectId } = await makeProject(db);
    const { id: endpointId } = await makeEndpoint(db, projectId);
    await db.rows(`select ensure_day('2020-02-01')`);
    const [eventId] = await makeEvents(db, projectId, [
      { atMs: Date.parse('2020-02-01T12:00:00Z') },
    ]);
    await makeDelivery(db, { projectId, eventId: eventId!, endpointId, status: 'scheduled' });
    await deleteEndpoint(db.knex, projectId, endpointId);
    await db.rows(
      `update event_deliveries set next_attempt_at = 'infinity' where endpoint_id = $1`,
      [endpointId],
    );
    assert.equal((await applyRetention(db.planes, { days: 30 })).unfinished, ['2020-02-01']);
    await sweep();
    assert.equal(
      (await applyRetention(db.planes, { days: 30 })).dropped.map(({ day }) => day),
      ['2020-02-01'],
    );
  },
);

settled(
  'a pause that comes during an activation holds what that releases, and neither goes on for ever',
  async () => {
    const { projectId, endpointId, become, state } = await setUp();
    await become('paused');
    await settleDeliveries(db.planes, { projectId, endpointId });
    const control = around(db.pool, 'read-endpoint-state', {
      after: async () => {
        await become('paused');
        await settleDeliveries(db.planes, { projectId, endpointId });
      },
    });
    await become('active');
    await settleDeliveries({ control, data: db.pool }, { projectId, endpointId });
    assert.equal(await state(endpointId), HELD);
  },
);

onPostgres(settled)(
  'no statement reads the history of an endpoint, the deliveries of others, or a project once for each row',
  async () => {
    const { projectId, endpointId, become } = await setUp();
    const { pool, texts } = noting(db);
    await become('paused');
    await settleDeliveries(bothPlanes({ pool }), { projectId, endpointId });
    await become('active');
    await settleDeliveries(bothPlanes({ pool }), { projectId, endpointId });
    await deleteEndpoint(db.knex, projectId, endpointId);
    await settleDeliveries(bothPlanes({ pool }), { projectId, endpointId });
    await sweepDeliveries(bothPlanes({ pool }), HOUR_SECONDS);
    await deleteProject(db.knex, projectId);
    await settleDeliveries(bothPlanes({ pool }), { projectId });
    const own = [...texts].filter((text) => text.includes('event_deliveries'));
    assert.is(own.length, 6);
    for (const text of own) {
      const plan = await genericPlan(db, text);
      assert.equal(readWhole(plan), [], plan);
      assert.not.match(plan, /\(project_id = w\.project_id\) AND \(id = w\.id\)\)$/m, plan);
      if (/endpoint_id = (\$|u\.endpoint)/.test(plan))
        assert.match(plan, /_project_id_endpoint_id_(status_id_)?idx\w* on event_deliveries/, plan);
      assert.not.match(plan, /Filter: .*endpoint_id = (\$3|u\.endpoint)/, plan);
    }
  },
);

settled.run();
