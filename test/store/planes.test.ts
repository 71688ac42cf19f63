import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import { deleteEndpoint, listEndpoints, setEndpointStatus } from '#store/config/endpoints';
import { isOwned } from '#store/config/owners';
import { deleteProject } from '#store/config/projects';
import { resealSecrets } from '#store/config/secrets';
import { sampleBacklog } from '#store/counts/backlog';
import { applyPendingDeltas, deleteOldCounts } from '#store/counts/count-deltas';
import { registerAgent } from '#store/deliveries/agents';
import { findEventDelivery, resendEventDelivery } from '#store/deliveries/delivery-log';
import { disableFailingEndpoints } from '#store/deliveries/endpoint-outages';
import { expediteDeliveries } from '#store/deliveries/postponed-deliveries';
import { retryDeliveries } from '#store/deliveries/retry';
import { settleDeliveries, sweepDeliveries } from '#store/deliveries/settle-deliveries';
import { acceptEvents } from '#store/events/events';
import { keptParts } from '#store/events/kept-messages';
import { firstArrivals } from '#store/events/message-arrivals';
import { DATA_TABLES } from '#store/postgres/planes';
import { quarantineMessages } from '#store/quarantine/messages';
import { runMaintenance } from '#store/retention/maintenance';
import { applyRetention } from '#store/retention/retention';
import { until } from '../support/until.js';
import { batch, newDelivery, newEvents, quarantinedMessage } from './batches.js';
import { at, dayOf } from './days-of-events.js';
import { makeDelivery, makeEndpoint, makeEvents, makeProject } from './made.js';
import { migratedDatabase } from './migrated.js';

/*
 * Here the planes are two databases, each with all tables: a statement that names tables of both
 * planes finds some of them empty.
 */
const apart = suite('store/planes');

const [control, data] = await Promise.all([migratedDatabase(), migratedDatabase()]);
const planes = { shard: 'default', control: control.pool, data: data.pool };
apart.after(async () => void (await Promise.all([control.close(), data.close()])));

const HOUR = 3_600_000;

async function setUp(statuses: readonly string[], config = {}) {
  const { id: projectId } = await makeProject(control, 'orders', config);
  const { id: endpointId } = await makeEndpoint(control, projectId, { owner_id: 'acme' });
  const events = await makeEvents(
    data,
    projectId,
    statuses.map((_, n) => ({ atMs: Date.now() - n * 1_000 })),
  );
  const ids: string[] = [];
  for (const [n, status] of statuses.entries())
    ids.push(await makeDelivery(data, { projectId, eventId: events[n]!, endpointId, status }));
  const states = async () =>
    (
      await data.rows<{ line: string }>(
        `select status || coalesce(case when next_attempt_at = 'infinity' then ' held' when next_attempt_at <= now() then ' due' end, '') as line
         from event_deliveries where project_id = $1 order by 1`,
        [projectId],
      )
    ).map(({ line }) => line);
  const become = (status: 'active' | 'paused') =>
    setEndpointStatus(control.knex, projectId, endpointId, { status, reason: null });
  return { projectId, endpointId, ids, states, become };
}

async function retried(projectId: string, more: object = {}) {
  const selection = { status: 'failure', from: new Date(Date.now() - HOUR), projectId } as const;
  const all = [];
  for await (const { tallies } of retryDeliveries(
    planes,
    { ...selection, ...more },
    { dryRun: false },
  ))
    all.push(...tallies.map(({ endpointName, outcome, count }) => [endpointName, outcome, count]));
  return all;
}

apart('a pause holds deliveries, an activation releases them and notifies agents', async () => {
  const { projectId, endpointId, states, become } = await setUp(['scheduled', 'retry', 'success']);
  const listener = await control.connect();
  const told: (string | undefined)[] = [];
  listener.on('notification', ({ payload }) => told.push(payload));
  await listener.query('listen gateway_due');
  try {
    await become('paused');
    assert.is(await settleDeliveries(planes, { projectId, endpointId }), 2);
    assert.equal(await states(), ['retry held', 'scheduled held', 'success']);
    await become('active');
    assert.is(await sweepDeliveries(planes, 60), 2);
    assert.equal(await states(), ['retry due', 'scheduled due', 'success']);
    await until('a notification', () => told.includes(projectId));
  } finally {
    await listener.end();
  }
});

apart('deliveries are retried, sent again and expedited, by owner and endpoint', async () => {
  const { projectId, endpointId, ids, states, become } = await setUp([
    'failure',
    'success',
    'failure',
  ]);
  assert.equal(await retried(projectId, { ownerId: 'nobody' }), []);
  assert.equal(await retried(projectId, { ownerId: 'acme' }), [['shop', 'due', 2]]);
  await become('paused');
  const delivery = (await findEventDelivery(planes, projectId, ids[1]!))!;
  assert.ok(await resendEventDelivery(planes, delivery, ['success']));
  assert.equal(await states(), ['scheduled due', 'scheduled due', 'scheduled held']);
  assert.is(await expediteDeliveries(planes, { projectId, endpointId }, ['breaker']), 0);
  assert.ok(await isOwned(planes, projectId, 'acme', 'event delivery', ids[0]!));
  assert.not.ok(await isOwned(planes, projectId, 'other', 'event delivery', ids[0]!));
});

apart('the sweep discards what waits for a deleted endpoint', async () => {
  const { projectId, endpointId, states } = await setUp(['scheduled', 'failure']);
  await deleteEndpoint(control.knex, projectId, endpointId);
  assert.is(await sweepDeliveries(planes, 60), 1);
  assert.equal(await states(), ['discarded', 'failure']);
  assert.equal(await retried(projectId), [['shop', 'deleted', 1]]);
});

apart('an endpoint that only fails is disabled, and endpoints are listed by failures', async () => {
  const { projectId, endpointId } = await setUp([], { disable_after_days: 1 });
  const { id: other } = await makeEndpoint(control, projectId, { name: 'bank' });
  await control.rows(`update endpoints set updated_at = now() - interval '9 days'`);
  for (const hours of [1, 30])
    await data.rows(
      `insert into activity values ($1, $2, date_bin('10 minutes', now(), 'epoch') - $3::int * interval '1 hour', 'attempt', 'failure', 9)`,
      [projectId, endpointId, hours],
    );
  assert.equal(await disableFailingEndpoints(planes, true), []);
  await control.rows(`update endpoint_outages set warned_at = warned_at - interval '1 day'`);
  const [disabled] = await disableFailingEndpoints(planes, true);
  assert.is(disabled?.endpoint_id, endpointId);
  for (const by of ['failures', 'last_request']) {
    const page = { perPage: 1, direction: 'next', sort: 'DESC', by } as const;
    const listed = { knex: control.knex, data: data.pool };
    const { content, nextPageCursor } = await listEndpoints(listed, projectId, {}, page);
    const next = { ...page, cursor: nextPageCursor! };
    const { content: rest } = await listEndpoints(listed, projectId, {}, next);
    assert.equal(
      [...content, ...rest].map(({ id }) => id),
      [endpointId, other],
    );
  }
});

apart('no secret is sealed anew while an agent of the data plane is alive', async () => {
  await registerAgent(data.pool, 'one', 60_000);
  const sealer = { open: (text: string) => text, seal: (text: string) => text };
  const reseal = () =>
    resealSecrets(control.knex, {
      ...{ from: sealer, to: sealer as never, connectionSchema: () => undefined },
      ...{ dataPlanes: [data.pool], dryRun: false },
    });
  const error: unknown = await reseal().catch((it: unknown) => it);
  assert.ok(isGatewayError(error, 'agents_running'), String(error));
  await data.rows('delete from agents');
  assert.ok((await reseal()).length > 0);
});

apart('nothing of a deleted project stays in the data plane after its retention', async () => {
  const { projectId, endpointId } = await setUp([], { retention: { days: 90 } });
  // The other tests leave unfinished deliveries on earlier days.
  const occurredAtMs = at(2);
  const events = newEvents(2, (n) => ({ projectId, occurredAtMs, idempotencyKey: `key ${n}` }));
  const [first] = events;
  const kept = keptParts({ headers: {}, body: Buffer.from('{"n":1}') });
  const message = { projectId, id: first!.id, occurredAtMs, digest: '00'.repeat(8), ...kept };
  await acceptEvents(
    data.pool,
    batch(events, {
      deliveries: events.map((event) =>
        newDelivery(event, { endpointId, status: 'scheduled', orderKey: newId() }),
      ),
      messages: [{ message, eventIds: [first!.id] }],
    }),
  );
  await data.rows(
    `insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, requested_at, endpoint_id, duration_ms, number, url)
     select project_id, id, gen_random_uuid(), occurred_at, now(), endpoint_id, 1, 1, 'http://x' from event_deliveries where project_id = $1`,
    [projectId],
  );
  await data.rows(
    `insert into delivery_attempt_counts (project_id, endpoint_id, delivered, http_status, n) values ($1, $2, true, 200, 2)`,
    [projectId, endpointId],
  );
  await quarantineMessages(data.pool, [quarantinedMessage({ projectId })]);
  await firstArrivals(data.pool, [{ projectId, id: newId(), occurredAtMs }]);
  await sampleBacklog(data.pool);
  await deleteProject(control.knex, projectId);
  assert.is(await settleDeliveries(planes, { projectId }), 2);
  await applyPendingDeltas(data.pool);
  const ofProjects = DATA_TABLES.filter(
    (it) => !/^(agents|archive_failure|metric_samples)$/.test(it),
  );
  const left = async () => {
    const found: string[] = [];
    for (const table of ofProjects) {
      const rows = await data.rows(`select from ${table} where project_id = $1 limit 1`, [
        projectId,
      ]);
      if (rows.length > 0) found.push(table);
    }
    return found;
  };
  const all = ofProjects.filter(
    (it) =>
      !/^(count_changes|moved_projects|project_fences|ordered_deliveries|ordered_keys)$/.test(it),
  );
  assert.equal(await left(), all);

  await control.rows(`update projects set deleted_at = now() - interval '2 hours' where id = $1`, [
    projectId,
  ]);
  await deleteOldCounts(planes);
  await data.rows(`update idempotency_keys set expires_at = now()`);
  await runMaintenance(planes);
  const { dropped } = await applyRetention(planes, { days: 30, now: new Date(at(33)) });
  assert.ok(dropped.some(({ day }) => day === dayOf(2)));
  assert.equal(await left(), []);
});

apart.run();
