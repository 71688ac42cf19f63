import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deleteEndpoint, setEndpointStatus } from '#store/config/endpoints';
import { claimDue, type EventDeliveryStatus } from '#store/deliveries/claims';
import { retryDeliveries, type RetryOutcome } from '#store/deliveries/retry';
import { settleDeliveries } from '#store/deliveries/settle-deliveries';
import { bothPlanes, type Planes } from '#store/postgres/planes';
import { until } from '../../support/until.js';
import { around, genericPlan, noting, onPostgres, readWhole } from '../batches.js';
import { makeDelivery, makeEndpoint, makeEvents, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const retry = suite('store/deliveries/retry');

const db = await migratedDatabase();
retry.after(() => db.close());

const HOUR = 3_600_000;
const COUNTS =
  'select status::text, count(*)::int as n from event_deliveries where project_id = $1 group by 1 order by 1';

interface Narrowed {
  readonly hours?: number;
  readonly eventId?: string;
  readonly endpointId?: string;
  readonly ownerId?: string;
  readonly dryRun?: boolean;
  readonly planes?: Planes;
}

/** Requeues a project's deliveries with a status. Returns counts by outcome. */
async function run(
  projectId: string,
  status: EventDeliveryStatus,
  { hours = 1, dryRun = false, planes = db.planes, ...ids }: Narrowed = {},
): Promise<Partial<Record<RetryOutcome, number>>> {
  const counts: Partial<Record<RetryOutcome, number>> = {};
  const selection = { status, from: new Date(Date.now() - hours * HOUR), projectId, ...ids };
  for await (const { tallies } of retryDeliveries(planes, selection, { dryRun })) {
    for (const { outcome, count } of tallies) counts[outcome] = (counts[outcome] ?? 0) + count;
  }
  return counts;
}

/** Creates a project with an endpoint and a delivery for each of these. */
async function scene(
  deliveries: readonly { status: string; hoursAgo?: number; attempts?: number }[],
) {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  const now = Date.now();
  const events = await makeEvents(
    db,
    projectId,
    deliveries.map(({ hoursAgo = 0 }) => ({ atMs: now - hoursAgo * HOUR })),
  );
  const ids: string[] = [];
  for (const [k, { status, attempts = 0 }] of deliveries.entries())
    ids.push(
      await makeDelivery(db, { projectId, eventId: events[k]!, endpointId, status, attempts }),
    );
  return { projectId, endpointId, events, ids };
}

/** Inserts failed deliveries, each in another millisecond. */
async function many(count: number): Promise<{ projectId: string; endpointId: string }> {
  const { projectId, endpointId } = await scene([]);
  await db.rows(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, attempts, reason)
     select $1, (lpad(to_hex(ms), 12, '0') || '8' || substr(md5(ms::text), 1, 3) || '8' || substr(md5(ms::text), 4, 15))::uuid, to_timestamp(ms / 1000.0),
            gen_random_uuid(), $2, 'failure', 11, 'status 500'
     from (select (extract(epoch from now()) * 1000)::bigint - n as ms from generate_series(1, $3::int) n) m`,
    [projectId, endpointId, count],
  );
  return { projectId, endpointId };
}

const states = (projectId: string) =>
  db.rows<{ status: string; held: boolean; attempts: number; reason: string | null }>(
    `select status, next_attempt_at = 'infinity' as held, attempts, reason from event_deliveries where project_id = $1 order by id`,
    [projectId],
  );
const statuses = async (projectId: string) =>
  (await states(projectId)).map(({ status }) => status).sort();

retry(
  'failed deliveries are due again at once, for agents that make first attempts, with their attempts on record',
  async () => {
    const { projectId, ids } = await scene([
      { status: 'failure', attempts: 11 },
      { status: 'success' },
      { status: 'processing' },
    ]);
    await db.rows(`update event_deliveries set reason = 'status 500' where id = $1`, [ids[0]]);
    assert.equal(await run(projectId, 'failure'), { due: 1 });
    const { claimed } = await claimDue(db.pool, 7, {
      projectId,
      statuses: ['scheduled'],
      exceptEndpoints: [],
      limit: 10,
    });
    assert.equal(
      claimed.map(({ id, attempts }) => ({ id, attempts })),
      [{ id: ids[0], attempts: 11 }],
    );
    assert.equal(await statuses(projectId), ['processing', 'processing', 'success']);
    assert.is((await states(projectId)).find(({ attempts }) => attempts === 11)?.reason, null);
  },
);

retry('a second run finds nothing of what failed or was discarded', async () => {
  for (const status of ['failure', 'discarded'] as const) {
    const { projectId } = await scene([{ status }, { status }]);
    assert.equal(await run(projectId, status), { due: 2 });
    assert.equal(await run(projectId, status), {});
  }
});

retry(
  'what waits for a later attempt is due now and stays a later attempt; what is due already is left alone',
  async () => {
    const { projectId, ids } = await scene([
      { status: 'retry', attempts: 2 },
      { status: 'retry', attempts: 3 },
    ]);
    await db.rows(
      `update event_deliveries set next_attempt_at = now() + interval '1 hour' where id = $1`,
      [ids[0]],
    );
    assert.equal(await run(projectId, 'retry'), { due: 1, waiting: 1 });
    assert.equal(await statuses(projectId), ['retry', 'retry']);
    assert.equal(await run(projectId, 'retry'), { waiting: 2 });
    assert.is(
      (
        await claimDue(db.pool, 7, {
          projectId,
          statuses: ['retry'],
          exceptEndpoints: [],
          limit: 10,
        })
      ).claimed.length,
      2,
    );
  },
);

retry(
  'what an agent that lives is sending is left alone; what a dead one held is due, and counted as recovered',
  async () => {
    const { projectId, ids } = await scene([
      { status: 'scheduled' },
      { status: 'scheduled' },
      { status: 'retry', attempts: 2 },
    ]);
    const agents = await db.rows<{ id: number }>(
      `insert into agents (name, expires_at) values ('alive', now() + interval '1 hour'), ('dead', now() - interval '1 second') returning id`,
    );
    const claim = (id: string, agent: number) =>
      db.rows(
        `update event_deliveries set status = 'processing', claimed_by = $2, next_attempt_at = null where id = $1`,
        [id, agent],
      );
    await claim(ids[0]!, agents[0]!.id);
    await claim(ids[1]!, agents[1]!.id);
    await claim(ids[2]!, 999_999);
    assert.equal(await run(projectId, 'processing', { dryRun: true }), { sending: 1, due: 2 });
    assert.equal(await run(projectId, 'processing'), { sending: 1, due: 2 });
    assert.equal(await run(projectId, 'processing'), { sending: 1 });
    const rows = await db.rows<{ status: string; claimed_by: number | null; recovered: number }>(
      'select status, claimed_by, recovered from event_deliveries where id = any ($1::uuid[]) order by array_position($1::uuid[], id)',
      [ids],
    );
    assert.equal(
      rows.map((row) => [row.status, row.claimed_by, row.recovered]),
      [
        ['processing', agents[0]!.id, 0],
        ['scheduled', null, 1],
        ['retry', null, 1],
      ],
    );
    await db.rows('delete from agents');
  },
);

retry('the time is that of the messages', async () => {
  const { projectId } = await scene([
    { status: 'failure', hoursAgo: 0 },
    { status: 'failure', hoursAgo: 30 },
  ]);
  assert.equal(await run(projectId, 'failure', { hours: 2, dryRun: true }), { due: 1 });
  assert.equal(await run(projectId, 'failure', { hours: 31, dryRun: true }), { due: 2 });
  assert.equal(await run(projectId, 'failure', { hours: 10_000_000, dryRun: true }), { due: 2 });
});

retry('an event, an endpoint and an owner narrow it', async () => {
  const it = await scene([{ status: 'failure' }, { status: 'failure' }]);
  const { id: other } = await makeEndpoint(db, it.projectId, { name: 'bank', owner_id: 'acme' });
  await makeDelivery(db, {
    projectId: it.projectId,
    eventId: it.events[0]!,
    endpointId: other,
    status: 'failure',
  });
  assert.equal(await run(it.projectId, 'failure', { ownerId: 'acme', dryRun: true }), { due: 1 });
  assert.equal(
    await run(it.projectId, 'failure', {
      ownerId: 'acme',
      endpointId: it.endpointId,
      dryRun: true,
    }),
    {},
  );
  assert.equal(await run(it.projectId, 'failure', { eventId: it.events[0]!, dryRun: true }), {
    due: 2,
  });
  assert.equal(await run(it.projectId, 'failure', { endpointId: it.endpointId, dryRun: true }), {
    due: 2,
  });
  assert.equal(await run(it.projectId, 'failure', { endpointId: other, eventId: it.events[0]! }), {
    due: 1,
  });
  assert.equal(await run(it.projectId, 'failure'), { due: 2 });
});

retry(
  'deliveries of a paused endpoint are held; those of an inactive or deleted one are left alone',
  async () => {
    const paused = await scene([{ status: 'failure' }]);
    await setEndpointStatus(db.knex, paused.projectId, paused.endpointId, {
      status: 'paused',
      reason: null,
    });
    assert.equal(await run(paused.projectId, 'failure'), { held: 1 });
    assert.equal(await states(paused.projectId), [
      { status: 'scheduled', held: true, attempts: 0, reason: null },
    ]);
    assert.equal(await run(paused.projectId, 'scheduled'), { waiting: 1 });

    const inactive = await scene([{ status: 'failure' }]);
    await setEndpointStatus(db.knex, inactive.projectId, inactive.endpointId, {
      status: 'inactive',
      reason: 'answered 410',
    });
    assert.equal(await run(inactive.projectId, 'failure'), { inactive: 1 });
    const deleted = await scene([{ status: 'discarded' }]);
    await deleteEndpoint(db.knex, deleted.projectId, deleted.endpointId);
    assert.equal(await run(deleted.projectId, 'discarded'), { deleted: 1 });
    assert.equal(
      [await statuses(inactive.projectId), await statuses(deleted.projectId)],
      [['failure'], ['discarded']],
    );
  },
);

for (const [status, held] of [
  ['paused', true],
  ['active', false],
] as const) {
  retry(
    `deliveries of an endpoint that becomes ${status} just before or after a batch are ${held ? 'held' : 'due'} in the end`,
    async () => {
      for (const when of ['before', 'after'] as const) {
        const { projectId, endpointId } = await scene([{ status: 'failure' }]);
        const become = async (status: 'active' | 'paused') => {
          await setEndpointStatus(db.knex, projectId, endpointId, { status, reason: null });
          await settleDeliveries(db.planes, { projectId, endpointId });
        };
        await become(held ? 'active' : 'paused');
        const data = around(db.pool, 'requeue-deliveries', { [when]: () => become(status) });
        const planes = { control: db.pool, data };
        assert.equal(await run(projectId, 'failure', { planes }), { [held ? 'due' : 'held']: 1 });
        assert.equal(await states(projectId), [
          { status: 'scheduled', held, attempts: 0, reason: null },
        ]);
      }
    },
  );
}

retry('deliveries of an endpoint that is deleted just before a batch are discarded', async () => {
  const { projectId, endpointId } = await scene([{ status: 'failure' }]);
  const before = async () => {
    await deleteEndpoint(db.knex, projectId, endpointId);
    await settleDeliveries(db.planes, { projectId, endpointId });
  };
  const data = around(db.pool, 'requeue-deliveries', { before });
  await run(projectId, 'failure', { planes: { control: db.pool, data } });
  assert.equal(await statuses(projectId), ['discarded']);
});

retry('several statuses are selected at once, and only what has changed since a time', async () => {
  const it = await scene([
    { status: 'failure', attempts: 3 },
    { status: 'retry', attempts: 2 },
    { status: 'success', attempts: 1 },
    { status: 'failure', attempts: 4 },
  ]);
  const { projectId, endpointId } = it;
  await db.rows(
    `update event_deliveries set next_attempt_at = now() + interval '1 hour' where id = $1`,
    [it.ids[1]],
  );
  await db.rows(
    `update event_deliveries set updated_at = now() - interval '2 hours' where id = $1`,
    [it.ids[3]],
  );
  const from = new Date(Date.now() - HOUR);
  const selection = { status: ['failure', 'retry'], from, changedSince: from, projectId } as const;
  for (const narrowed of [{}, { endpointId }]) {
    let count = 0;
    const steps = retryDeliveries(db.planes, { ...selection, ...narrowed }, { dryRun: true });
    for await (const { tallies } of steps) for (const it of tallies) count += it.count;
    assert.is(count, 2);
  }
  const steps = retryDeliveries(
    db.planes,
    { ...selection, endpointId },
    { dryRun: false, dueInMs: 60_000 },
  );
  for await (const _ of steps);
  const rows = await db.rows(
    `select status::text, attempts, next_attempt_at between now() and now() + interval '1 minute' as due from event_deliveries where project_id = $1 order by attempts`,
    [projectId],
  );
  assert.equal(rows, [
    { status: 'success', attempts: 1, due: null },
    { status: 'retry', attempts: 2, due: true },
    { status: 'scheduled', attempts: 3, due: true },
    { status: 'failure', attempts: 4, due: null },
  ]);
});

retry('a dry run counts by endpoint and changes nothing', async () => {
  const { projectId, endpointId } = await scene([{ status: 'failure' }, { status: 'failure' }]);
  const steps = [];
  for await (const step of retryDeliveries(
    db.planes,
    { status: 'failure', from: new Date(Date.now() - HOUR), projectId },
    { dryRun: true },
  ))
    steps.push(...step.tallies);
  assert.equal(steps, [{ endpointId, endpointName: 'shop', outcome: 'due', count: 2 }]);
  assert.equal(await statuses(projectId), ['failure', 'failure']);
});

retry(
  '20,000 deliveries are re-queued in short commits that agents hear of, and successes beside them stay',
  async () => {
    const { projectId } = await many(22_000);
    await db.rows(
      `update event_deliveries set status = 'success' where project_id = $1 and id > (select percentile_disc(20000.0 / 22000) within group (order by id) from event_deliveries where project_id = $1)`,
      [projectId],
    );
    const listener = await db.connect();
    let told = 0;
    listener.on('notification', ({ payload }) => (told += payload === projectId ? 1 : 0));
    await listener.query('listen gateway_due');
    try {
      let largest = 0;
      let count = 0;
      let done = 0;
      for await (const step of retryDeliveries(
        db.planes,
        { status: 'failure', from: new Date(Date.now() - HOUR), projectId },
        { dryRun: false },
      )) {
        const changed = step.tallies.reduce((sum, it) => sum + it.count, 0);
        largest = Math.max(largest, changed);
        count += changed;
        assert.ok(step.done >= done && step.done <= 1, 'it only goes on');
        done = step.done;
      }
      assert.is(count, 20_000);
      assert.is(largest, 1_000);
      await until('20 notifications', () => told === 20);
      assert.equal(await db.rows(COUNTS, [projectId]), [
        { status: 'scheduled', n: 20_000 },
        { status: 'success', n: 2_000 },
      ]);
    } finally {
      await listener.end();
    }
  },
);

retry(
  'two at once queue each delivery once, also one that was sent and failed again meanwhile',
  async () => {
    const { projectId } = await many(6_000);
    const both = await Promise.all([run(projectId, 'failure'), run(projectId, 'failure')]);
    assert.is((both[0].due ?? 0) + (both[1].due ?? 0), 6_000);

    const { projectId: again } = await many(2_000);
    const slow = retryDeliveries(
      db.planes,
      { status: 'failure', from: new Date(Date.now() - HOUR), projectId: again },
      { dryRun: false },
    );
    await slow.next(); // it has started, and knows which deliveries to change
    assert.equal(await run(again, 'failure'), { due: 2_000 });
    // An agent sends them, and they fail again.
    await db.rows(
      `update event_deliveries set status = 'failure', next_attempt_at = null, updated_at = now() where project_id = $1`,
      [again],
    );
    let count = 0;
    for await (const { tallies } of slow) count += tallies.reduce((sum, it) => sum + it.count, 0);
    assert.is(count, 0);
  },
);

retry('rows that somebody else holds are left to them', async () => {
  const { projectId, ids } = await scene([{ status: 'failure' }, { status: 'failure' }]);
  const other = await db.connect();
  try {
    await other.query('begin');
    await other.query('select from event_deliveries where id = $1 for update', [ids[0]]);
    assert.equal(await run(projectId, 'failure'), { due: 1 });
  } finally {
    await other.end();
  }
});

retry('who stops reading stops between two commits, and the rest is as it was', async () => {
  const { projectId } = await many(3_000);
  let count = 0;
  for await (const { tallies } of retryDeliveries(
    db.planes,
    { status: 'failure', from: new Date(Date.now() - HOUR), projectId },
    { dryRun: false },
  )) {
    count += tallies.reduce((sum, it) => sum + it.count, 0);
    if (count > 0) break;
  }
  const left = await db.rows<{ status: string; n: number }>(COUNTS, [projectId]);
  assert.equal(left, [
    { status: 'failure', n: 3_000 - count },
    { status: 'scheduled', n: count },
  ]);
});

onPostgres(retry)(
  'no statement reads a table of the way of a message whole, with plans made on empty tables',
  async () => {
    const { projectId, endpointId, events } = await scene([{ status: 'failure' }]);
    const { pool, texts } = noting(db);
    for (const ids of [{}, { endpointId }, { eventId: events[0]! }])
      await run(projectId, 'failure', { ...ids, planes: bothPlanes({ pool }), dryRun: true });
    await run(projectId, 'failure', { planes: bothPlanes({ pool }) });
    const own = [...texts].filter((text) => /event_deliveries|events/.test(text));
    assert.is(own.length, 4);
    for (const text of own) {
      const plan = await genericPlan(db, text);
      assert.equal(readWhole(plan), [], plan);
      assert.not.match(plan, /-> {2}Sort\n +Sort Key: e\.id/, plan);
      assert.not.match(plan, /Join Filter/, 'each row of a batch would be compared with all');
    }
  },
);

retry.run();
