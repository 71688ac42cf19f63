import type { PoolClient } from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCountUpdates } from '#agent/liveness/counts';
import { newId } from '#core/events/ids';
import { deleteEndpoint } from '#store/config/endpoints';
import { applyCountDeltas, applyPendingDeltas } from '#store/counts/count-deltas';
import { recordAttempts, type AttemptRecord } from '#store/deliveries/delivery-attempts';
import { resendEventDelivery } from '#store/deliveries/delivery-log';
import { claimDue, recoverDeliveries, releaseDeliveries } from '#store/deliveries/claims';
import { settleDeliveries } from '#store/deliveries/settle-deliveries';
import { retryDeliveries } from '#store/deliveries/retry';
import { acceptEvents, recordRoutes, type NewEventDelivery } from '#store/events/events';
import type { Database } from '#store/postgres/database';
import { migrateDown, migrateUp } from '#store/postgres/migrate';
import { runMaintenance } from '#store/retention/maintenance';
import { keptLog } from '../../agent/running.js';
import { until } from '../../support/until.js';
import {
  acceptPending,
  attempt,
  batch,
  empty,
  ENDPOINT,
  lockAwaited,
  newDelivery,
  newEvents,
  noting,
  onPostgres,
  PROJECT,
} from '../batches.js';
import { assertCounted, forgetAllCounts } from '../counted.js';
import { makeEndpoint, makeProject } from '../made.js';
import { migratedDatabase, openUrl } from '../migrated.js';

const counts = suite('store/counts/count-deltas');

const db = await migratedDatabase();
counts.after(() => db.close());
counts.before.each(async () => {
  await empty(db);
  await forgetAllCounts(db);
});

const OTHER = newId();
const failed = { status: 'failure', code: 500, errorClass: 'status' } as const;
const again = { status: 'retry', code: null, errorClass: 'timeout', dueInMs: 0 } as const;

/** Deliveries of new events, by default held by agent 1. */
async function make(
  count: number,
  fields: Partial<NewEventDelivery> = {},
  pool: Database['pool'] = db.pool,
): Promise<NewEventDelivery[]> {
  const events = newEvents(count, (n) => ({
    projectId: fields.projectId ?? PROJECT,
    ...(n % 2 === 0 ? {} : { eventType: 'order.sent', sourceId: null }),
  }));
  const made = events.map((event, n) =>
    newDelivery(event, { ...(n % 3 === 0 ? { endpointId: OTHER } : {}), ...fields }),
  );
  await acceptEvents(pool, batch(events, { deliveries: made }));
  return made;
}

function end(
  deliveries: readonly NewEventDelivery[],
  fields: Partial<AttemptRecord> = {},
  pool: Database['pool'] = db.pool,
): Promise<void> {
  return recordAttempts(
    pool,
    deliveries.map((delivery) => attempt(delivery, fields)),
  );
}

async function nOf(status: string): Promise<number> {
  await applyPendingDeltas(db.pool);
  const [row] = await db.rows<{ n: number }>(
    `select coalesce(sum(n), 0)::int as n from event_delivery_counts where status = $1`,
    [status],
  );
  return row!.n;
}

counts('events are counted when they are accepted, duplicates are not', async () => {
  const events = newEvents(5);
  await acceptEvents(db.pool, batch(events));
  await acceptEvents(db.pool, batch(events));
  await acceptEvents(
    db.pool,
    batch(newEvents(3, { status: 'failed', outcome: 'no_endpoints', sourceId: null })),
  );
  await acceptEvents(
    db.pool,
    batch(newEvents(3, { status: 'failed', outcome: 'no_endpoints', idempotencyKey: null })),
  );
  assert.is(await assertCounted(db), 3);
});

counts('an event that is pending is counted when it is routed, once', async () => {
  const events = await acceptPending(db, 6);
  assert.is(await assertCounted(db), 0);
  const routed = events.map(({ projectId, id, occurredAtMs }, n) => ({
    ...{ projectId, id, occurredAtMs },
    status: n < 4 ? ('processed' as const) : ('failed' as const),
    outcome: n < 4 ? 'routed' : 'no_endpoints',
  }));
  const deliveries = events
    .slice(0, 4)
    .map((event) =>
      newDelivery(event, { status: 'discarded', reason: 'The endpoint is inactive.' }),
    );
  await recordRoutes(db.pool, { events: routed, deliveries, agentId: 1 });
  await recordRoutes(db.pool, { events: routed, deliveries, agentId: 2 });
  assert.is(await assertCounted(db), 3);
  assert.is(await nOf('discarded'), 4);
});

counts(
  'deliveries and attempts are counted by how they ended; one that is tried again has an attempt and has not ended',
  async () => {
    const made = await make(12);
    await end(made.slice(0, 6));
    await end(made.slice(6, 9), failed);
    await end(made.slice(9), again);
    assert.ok((await assertCounted(db)) > 10);
    assert.equal([await nOf('success'), await nOf('failure')], [6, 3]);
    const { claimed } = await claimDue(db.pool, 2, {
      projectId: PROJECT,
      statuses: ['retry'],
      exceptEndpoints: [],
      limit: 10,
    });
    assert.is(claimed.length, 3);
    await end(made.slice(9), { number: 2, agentId: 2 });
    await assertCounted(db);
    assert.is(await nOf('success'), 9);
  },
);

counts(
  'a record that is repeated counts nothing; an attempt of an agent that lost its delivery is counted and ends nothing',
  async () => {
    const made = await make(4);
    const attempts = made.map((delivery) => attempt(delivery));
    await recordAttempts(db.pool, attempts);
    await recordAttempts(db.pool, attempts);
    await end(made, { agentId: 9, ...failed });
    await assertCounted(db);
    assert.equal([await nOf('success'), await nOf('failure')], [4, 0]);
  },
);

counts(
  'deliveries that are given back or recovered are not counted, those that are discarded are',
  async () => {
    const made = await make(9);
    await releaseDeliveries(db.pool, 1, made.slice(0, 3), { to: 'due', dueInMs: 0 });
    await releaseDeliveries(db.pool, 1, made.slice(3, 5), {
      to: 'discarded',
      reason: 'The endpoint was deleted.',
    });
    await releaseDeliveries(db.pool, 1, made.slice(3, 5), {
      to: 'discarded',
      reason: 'The endpoint was deleted.',
    });
    await recoverDeliveries(db.pool, { orphans: true });
    await assertCounted(db);
    assert.is(await nOf('discarded'), 2);
    await settleDeliveries(db.planes, { projectId: PROJECT, endpointId: OTHER });
    await settleDeliveries(db.planes, { projectId: PROJECT });
    await assertCounted(db);
    assert.is(await nOf('discarded'), 9);
  },
);

counts('deliveries that are made due again leave the count of how they had ended', async () => {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  const made = await make(8, { projectId, endpointId });
  await end(made.slice(0, 5), failed);
  await end(made.slice(5));
  const resend = (id: string) => {
    const delivery = { project_id: projectId, id, endpoint_id: endpointId };
    return resendEventDelivery(db.planes, delivery, ['success', 'failure']);
  };
  await assertCounted(db);
  assert.is(await resend(made[0]!.id), true);
  assert.is(await resend(made[0]!.id), false);
  assert.is(await resend(made[7]!.id), true);
  await assertCounted(db);
  assert.equal([await nOf('success'), await nOf('failure')], [2, 4]);
  const selection = {
    status: 'failure',
    from: new Date(Date.now() - 60_000),
    projectId,
  } as const;
  for await (const _ of retryDeliveries(db.planes, selection, { dryRun: false }));
  await assertCounted(db);
  assert.equal([await nOf('success'), await nOf('failure')], [2, 0]);
});

counts('what a transaction takes back is not counted', async () => {
  const client = await db.pool.connect();
  try {
    await client.query('begin');
    await acceptEvents(client, batch(newEvents(3)));
    await client.query('rollback');
  } finally {
    client.release();
  }
  assert.is(await assertCounted(db), 0);
});

counts('the counts are right beside agents that write and fold at once', async () => {
  const agents = [openUrl(db.url), openUrl(db.url)];
  try {
    const work = agents.flatMap(({ pool }) =>
      Array.from({ length: 6 }, async (_, n) => {
        const made = await make(40, {}, pool);
        await Promise.all([
          end(made.slice(0, 20), n % 2 ? failed : {}, pool),
          end(made.slice(20), again, pool),
          applyPendingDeltas(pool),
        ]);
        await applyPendingDeltas(pool);
      }),
    );
    await Promise.all(work);
  } finally {
    await Promise.all(agents.map((agent) => agent.close()));
  }
  await assertCounted(db);
  assert.equal([await nOf('success'), await nOf('failure')], [120, 120]);
});

counts('changes that piled up are folded, and leave nothing', async () => {
  await make(4);
  await db.rows(
    'insert into count_changes select c.* from count_changes c, generate_series(1, 1199)',
  );
  // One statement adds up 200,000 counts and those of a row that exceeds them.
  const columns = ['endpoints', 'sources', 'event_types', 'statuses', 'http_statuses', 'changes'];
  await db.rows(
    `insert into count_changes select project_id, ${columns.map((it) => `array_fill(${it}[1], array[150000])`).join()}
     from (select * from count_changes limit 1) c, generate_series(1, 3)`,
  );
  const [before] = await db.rows<{ n: number }>(
    `select sum(n)::int as n from count_changes c, unnest(c.endpoints, c.changes) u(endpoint, n) where endpoint is null`,
  );
  assert.is(await applyPendingDeltas(db.pool), 1203);
  assert.is(await applyPendingDeltas(db.pool), 0);
  const [row] = await db.rows<{ n: number }>('select sum(n)::int as n from event_counts');
  assert.is(row?.n, before?.n);
  assert.ok(before!.n >= 450_000, String(before?.n));
});

onPostgres(counts)('the projects of a batch are not compared with each other', async () => {
  const events = newEvents(300, () => ({ projectId: newId() }));
  const deliveries = events.map((event) => newDelivery(event));
  await acceptEvents(db.pool, batch(events, { deliveries }));
  await end(deliveries);
  const client = await db.pool.connect();
  try {
    const { pool, texts } = noting({ pool: client } as unknown as Database);
    await client.query('begin');
    await applyCountDeltas(pool as unknown as PoolClient);
    await client.query('rollback');
    await client.query(`prepare planned as ${[...texts].join()}`);
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      'explain (analyze, costs off, timing off) execute planned(1000)',
    );
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    assert.match(plan, /on event_delivery_counts[^]*Tuples Inserted: 300/);
    const removed = [...plan.matchAll(/Rows Removed by Join Filter: (\d+)/g)];
    assert.ok(Math.max(0, ...removed.map(([, rows]) => Number(rows))) < 10 * 300, plan);
  } finally {
    client.release(true);
  }
});

counts('an agent folds what was counted also when nobody looks at metrics', async () => {
  const { log } = keptLog();
  const stop = startCountUpdates({ pool: db.pool, log, everyMs: 10 });
  try {
    for (let k = 0; k < 2; k++) {
      await end(await make(3));
      await until(
        'nothing to be left',
        async () => (await db.rows('select from count_changes')).length === 0,
      );
    }
  } finally {
    await stop();
  }
  await assertCounted(db);
});

counts('a fold that fails is told once and tried again', async () => {
  await end(await make(3));
  await db.rows('alter table event_counts rename to elsewhere');
  const { log, lines } = keptLog();
  let tries = 0;
  const pool = new Proxy(db.pool, {
    get(target, property) {
      if (property === 'connect') tries++;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const stop = startCountUpdates({ pool, log, everyMs: 5 });
  try {
    await until('three tries', () => tries >= 3);
    await db.rows('alter table elsewhere rename to event_counts');
    await until(
      'nothing to be left',
      async () => (await db.rows('select from count_changes')).length === 0,
    );
  } finally {
    await stop();
    await db.rows('alter table if exists elsewhere rename to event_counts');
  }
  assert.equal(
    lines.map(({ level }) => level),
    ['warn'],
  );
  await assertCounted(db);
});

counts('an agent that stops does not wait for a fold that is under way', async () => {
  await end(await make(3));
  const { log, lines } = keptLog();
  const client = await db.pool.connect();
  try {
    await client.query('begin; lock table event_counts in access exclusive mode');
    const stop = startCountUpdates({ pool: db.pool, log, everyMs: 1 });
    await lockAwaited(db, 'a fold that waits');
    let isStopped = false;
    const stopping = stop().then(() => (isStopped = true));
    await until('the stop', () => isStopped, { withinMs: 10_000 }).finally(() =>
      client.query('rollback'),
    );
    await stopping;
  } finally {
    client.release(true);
  }
  assert.equal(lines, []);
  await until('the fold of others', async () => (await applyPendingDeltas(db.pool)) > 0);
  await assertCounted(db);
});

onPostgres(counts)('the table of changes does not grow with what went through it', async () => {
  await db.rows('vacuum full count_changes');
  const megabytes = async () => {
    const [row] = await db.rows<{ mb: number }>(
      `select pg_table_size('count_changes') / 1048576.0 as mb`,
    );
    return Number(row!.mb);
  };
  const sizes: number[] = [];
  let turn = 0;
  for (let k = 0; k < 8; k++) {
    await make(2);
    await db.rows(
      'insert into count_changes select c.* from count_changes c, generate_series(1, 30000)',
    );
    if (k === 0) turn = await megabytes();
    await applyPendingDeltas(db.pool);
    sizes.push(await megabytes());
  }
  // The table is vacuumed after a growth of 4 MB, or earlier by autovacuum: the remains of one turn
  // and 4 MB are no growth, eight turns are.
  assert.ok(
    Math.max(...sizes) < 4 + 2 * turn,
    `${sizes.map((mb) => mb.toFixed(1)).join(' ')}, a turn adds ${turn.toFixed(1)}`,
  );
  assert.ok(
    8 * turn > 2 * (4 + 2 * turn),
    `turns of ${turn.toFixed(1)} MB are too small to show growth`,
  );
});

counts(
  'a producer whose event types have no end fills a project up to a bound; what is new beyond it is counted as other',
  async () => {
    const [known] = await make(1);
    await end([known!]);
    await applyPendingDeltas(db.pool);
    await db.rows(
      `insert into event_delivery_counts select $1, gen_random_uuid(), 'api', 'type ' || n, 'success', 1 from generate_series(1, 20000) n`,
      [PROJECT],
    );
    const events = newEvents(2, (n) => ({ eventType: n === 0 ? 'order.paid' : 'order.20001' }));
    const more = events.map((event) => newDelivery(event, { endpointId: known!.endpointId }));
    await acceptEvents(db.pool, batch(events, { deliveries: more }));
    await end(more);
    await applyPendingDeltas(db.pool);
    assert.equal(
      await db.rows(
        `select event_type, n::int from event_delivery_counts where endpoint_id = $1 order by 1`,
        [known!.endpointId],
      ),
      [
        { event_type: 'order.paid', n: 2 },
        { event_type: 'other', n: 1 },
      ],
    );
  },
);

counts(
  'the counts of an endpoint are forgotten some time after it was deleted, those of others stay',
  async () => {
    const { id: projectId } = await makeProject(db);
    const [gone, kept] = [await makeEndpoint(db, projectId), await makeEndpoint(db, projectId)];
    for (const { id: endpointId } of [gone, kept])
      await end(await make(3, { projectId, endpointId }));
    await deleteEndpoint(db.knex, projectId, gone.id);
    const left = async () => {
      await runMaintenance(db.planes);
      const rows = await db.rows<{ endpoint_id: string }>(
        `select endpoint_id from event_delivery_counts union select endpoint_id from delivery_attempt_counts`,
      );
      return rows.map(({ endpoint_id: id }) => id).sort();
    };
    await applyPendingDeltas(db.pool);
    assert.equal(await left(), [gone.id, kept.id].sort());
    await db.rows(`update endpoints set deleted_at = now() - interval '2 hours' where id = $1`, [
      gone.id,
    ]);
    const place = (shard: string) =>
      db.rows('update projects set shard = $2 where id = $1', [projectId, shard]);
    await db.rows(`insert into shards (name, schema_name) values ('other', 'other')`);
    await place('other');
    assert.equal(await left(), [gone.id, kept.id].sort(), 'the project is on another shard');
    await place('default');
    assert.equal(await left(), [kept.id]);
  },
);

counts('counts are not forgotten while somebody folds, who holds some of them', async () => {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  await end(await make(3, { projectId, endpointId }));
  await applyPendingDeltas(db.pool);
  await db.rows(`update endpoints set deleted_at = now() - interval '2 hours' where id = $1`, [
    endpointId,
  ]);
  const left = async () =>
    (await db.rows('select from event_delivery_counts where endpoint_id = $1', [endpointId]))
      .length;
  const folding = await db.pool.connect();
  try {
    await folding.query(`select pg_advisory_lock(hashtext('gateway.counts'))`);
    await runMaintenance(db.planes);
    assert.is.not(await left(), 0);
  } finally {
    folding.release(true);
  }
  await until('the counts to be forgotten', async () => {
    await runMaintenance(db.planes);
    return (await left()) === 0;
  });
});

onPostgres(counts)('counting everything anew comes to the same counts', async () => {
  const made = await make(10);
  await end(made.slice(0, 5));
  await end(made.slice(5, 8), failed);
  await applyPendingDeltas(db.pool);
  await db.rows('delete from event_delivery_counts');
  await make(2, { status: 'discarded', reason: 'x' });
  await db.rows('select recount_finished()');
  assert.is(await applyPendingDeltas(db.pool), 0);
  await assertCounted(db);
});

onPostgres(counts)(
  'what was there before the counts is counted by the migration, and what is not over learns its type and source',
  async () => {
    const own = await migratedDatabase();
    try {
      while (!(await migrateDown(own)).includes('0006_metrics'));
      const at = new Date();
      const rows = async (status: string, source: string | null) => {
        const id = newId();
        await own.rows(
          `insert into events (project_id, id, occurred_at, source_id, coordinates, event_type, status, outcome, headers, data)
         values ($1, $2, $3, $4, $5, 'order.paid', 'processed', 'routed', '{}', '{}')`,
          [PROJECT, id, at, source, id],
        );
        await own.rows(
          `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, next_attempt_at)
         values ($1, $2, $3, $4, $5, $6::event_delivery_status, case when $6 = 'retry' then now() end)`,
          [PROJECT, newId(), at, id, OTHER, status],
        );
      };
      const source = newId();
      await rows('success', source);
      await rows('retry', source);
      await rows('retry', null);
      await migrateUp(own);
      assert.equal(
        await own.rows(
          `select event_type, source_id from event_deliveries where status = 'retry' order by source_id`,
        ),
        [
          { event_type: 'order.paid', source_id: source },
          { event_type: 'order.paid', source_id: null },
        ],
      );
      assert.equal(
        await own.rows('select source, event_type, status, n::int from event_delivery_counts'),
        [{ source: '', event_type: '', status: 'success', n: 1 }],
      );
      assert.equal(await own.rows('select source, status, n::int from event_counts order by n'), [
        { source: 'api', status: 'processed', n: 1 },
        { source, status: 'processed', n: 2 },
      ]);
      // One delivery without a known type is made due again: it leaves its count.
      const [over] = await own.rows<{ id: string }>(
        `update event_deliveries set occurred_at = occurred_at where status = 'success' returning id`,
      );
      assert.ok(await resendWith(own, over!.id));
      await applyPendingDeltas(own.pool);
      assert.equal(await own.rows('select n::int from event_delivery_counts'), [{ n: 0 }]);
    } finally {
      await own.close();
    }
  },
);

/** Resends a delivery with an id that does not start exactly with its time. */
async function resendWith(
  own: Awaited<ReturnType<typeof migratedDatabase>>,
  id: string,
): Promise<boolean> {
  await own.rows(
    `update event_deliveries set occurred_at = to_timestamp($2::bigint / 1000.0) where id = $1`,
    [id, parseInt(id.replaceAll('-', '').slice(0, 12), 16)],
  );
  const delivery = { project_id: PROJECT, id, endpoint_id: ENDPOINT };
  return resendEventDelivery(own.planes, delivery, ['success']);
}

counts.run();
