import type pg from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { setEndpointStatus } from '#store/config/endpoints';
import { deleteProject } from '#store/config/projects';
import { applyPendingDeltas } from '#store/counts/count-deltas';
import { recordAttempts } from '#store/deliveries/delivery-attempts';
import { settleDeliveries } from '#store/deliveries/settle-deliveries';
import { acceptEvents } from '#store/events/events';
import { COUNTINGS, readQueueSample, type QueueSample } from '#store/counts/queue-sample';
import { lastSample, takeSample } from '#store/counts/stored-sample';
import { bothPlanes } from '#store/postgres/planes';
import {
  acceptPending,
  attempt,
  batch,
  empty,
  newDelivery,
  newEvents,
  onPostgres,
  PROJECT,
  SOURCE,
} from '../batches.js';
import { forgetAllCounts } from '../counted.js';
import { makeEndpoint, makeProject } from '../made.js';
import { within } from '../../support/until.js';
import { migratedDatabase, openUrl } from '../migrated.js';

const samples = suite('store/counts/queue-sample');

const db = await migratedDatabase();
samples.after(() => db.close());
samples.before.each(async () => {
  await empty(db);
  await forgetAllCounts(db);
});

const timeoutMs = 30_000;
const countsMax = 1000;

/** Takes a sample in a transaction, and queries the same snapshot. */
async function sampled<T = undefined>(
  look?: (client: pg.PoolClient) => Promise<T>,
  max = countsMax,
): Promise<{ sample: QueueSample; seen: T | undefined }> {
  const client = await db.pool.connect();
  try {
    await client.query('begin isolation level repeatable read');
    const sample = await readQueueSample(client, client, {
      control: client,
      timeoutMs,
      countsMax: max,
    });
    const seen = await look?.(client);
    await client.query('commit');
    return { sample, seen };
  } finally {
    client.release();
  }
}

const age = (value: number | null) => (value === null ? null : Math.round(value / 10) * 10);

samples(
  'work that is not over is there by all its labels with the age of the oldest message, whatever it waits for',
  async () => {
    const { id: projectId, organisation_id: organisationId } = await makeProject(db, 'shop');
    const { id: endpointId } = await makeEndpoint(db, projectId);
    const { id: pausedId } = await makeEndpoint(db, projectId);
    const ago = (seconds: number, sourceId: string | null = SOURCE) =>
      newEvents(2, (n) => ({
        projectId,
        sourceId,
        occurredAtMs: Date.now() - 1000 * (seconds + 100 * n),
      }));
    const events = { held: ago(100), api: ago(500, null), retried: ago(1000), paused: ago(2000) };
    const { held, api, retried, paused } = {
      held: events.held.map((event) => newDelivery(event, { endpointId })),
      api: events.api.map((event) => newDelivery(event, { endpointId, status: 'scheduled' })),
      retried: events.retried.map((event) => newDelivery(event, { endpointId })),
      paused: events.paused.map((event) =>
        newDelivery(event, { endpointId: pausedId, status: 'scheduled' }),
      ),
    };
    const sorted = Object.values(events).flat();
    sorted.sort((a, b) => (a.id < b.id ? -1 : 1));
    await acceptEvents(
      db.pool,
      batch(sorted, { deliveries: [...held, ...api, ...retried, ...paused] }),
    );
    await recordAttempts(
      db.pool,
      retried.map((delivery) =>
        attempt(delivery, {
          status: 'retry',
          dueInMs: 60_000,
          code: null,
          errorClass: 'dns',
        }),
      ),
    );
    await setEndpointStatus(db.knex, projectId, pausedId, { status: 'paused', reason: null });
    await settleDeliveries(db.planes, { projectId, endpointId: pausedId });
    await acceptPending(db, 3, { projectId, occurredAtMs: Date.now() - 50_000 });

    const { sample } = await sampled();
    const lines = sample.deliveries.map(([, endpoint, source, type, status, n, oldest]) =>
      [endpoint, source, type, status, n, age(oldest)].join(' '),
    );
    assert.equal(
      lines.sort(),
      [
        `${endpointId} ${SOURCE} order.paid processing 2 200`,
        `${endpointId} ${SOURCE} order.paid retry 2 1100`,
        `${endpointId} api order.paid scheduled 2 600`,
        `${pausedId} ${SOURCE} order.paid scheduled 2 2100`,
      ].sort(),
    );
    assert.equal(sample.projects, { [projectId]: ['shop', organisationId, 'Acme'] });
    assert.equal(
      sample.events
        .map(([, source, status, n, oldest]) => [source, status, n, age(oldest)].join(' '))
        .sort(),
      [`${SOURCE} pending 3 50`, `${SOURCE} processed 6 `, 'api processed 2 '].sort(),
    );
    assert.equal(sample.attempts, [[projectId, endpointId, 'failure', 'none', 2, null]]);
  },
);

samples('a project that was deleted or has no row is sampled like any other', async () => {
  const { id: projectId } = await makeProject(db, 'gone');
  const events = [...newEvents(1, { projectId }), ...newEvents(1)];
  await acceptEvents(
    db.pool,
    batch(events, { deliveries: events.map((event) => newDelivery(event)) }),
  );
  await deleteProject(db.knex, projectId);
  const { sample } = await sampled();
  assert.equal(sample.deliveries.map(([project]) => project).sort(), [projectId, PROJECT].sort());
  assert.equal(Object.keys(sample.projects), [projectId]);
});

samples(
  'beside agents that write, every sample is one moment: each delivery and attempt of it is in it once',
  async () => {
    let isOver = false;
    let looks = 0;
    const writing = Promise.all(
      [1, 2].map(async () => {
        // Continues until two samples were taken, on any machine.
        for (let k = 0; k < 12 || (looks < 2 && k < 500); k++) {
          const events = newEvents(30);
          const made = events.map((event) => newDelivery(event));
          await acceptEvents(db.pool, batch(events, { deliveries: made }));
          await recordAttempts(
            db.pool,
            made.map((delivery, n) =>
              attempt(
                delivery,
                n % 3 === 0 ? { status: 'retry', dueInMs: 0, code: 500, errorClass: 'status' } : {},
              ),
            ),
          );
        }
      }),
    ).finally(() => (isOver = true));
    while (!isOver) {
      const { sample, seen } = await sampled(async (client) => {
        const { rows } = await client.query<{
          deliveries: number;
          attempts: number;
          events: number;
        }>(
          `select (select count(*) from event_deliveries)::int as deliveries, (select count(*) from delivery_attempts)::int as attempts, (select count(*) from events)::int as events`,
        );
        return rows[0]!;
      });
      const sum = (counts: readonly (readonly unknown[])[], at: number) =>
        counts.reduce((total, row) => total + (row[at] as number), 0);
      const counted = {
        deliveries: sum(sample.deliveries, 5),
        attempts: sum(sample.attempts, 4),
        events: sum(sample.events, 3),
      };
      assert.equal(counted, seen);
      looks++;
    }
    await writing;
    assert.ok(looks > 1, `${looks} samples`);
  },
);

onPostgres(samples)(
  'both connections of a sample see one moment: a delivery that moves between them is in it once',
  async () => {
    const made = newEvents(3).map((event) => ({ event, delivery: newDelivery(event) }));
    await acceptEvents(
      db.pool,
      batch(
        made.map(({ event }) => event),
        { deliveries: made.map(({ delivery }) => delivery) },
      ),
    );
    const retried = {
      status: 'retry',
      dueInMs: 60_000,
      httpStatus: 500,
      errorClass: 'status',
    } as const;
    let connections = 0;
    const connect = async () => {
      if (++connections === 2)
        await recordAttempts(
          db.pool,
          made.map(({ delivery }) => attempt(delivery, retried)),
        );
      return db.pool.connect();
    };
    const pool = Object.create(db.pool, { connect: { value: connect } }) as pg.Pool;
    await takeSample(bothPlanes({ pool }), { isDue: () => true, timeoutMs, countsMax });
    assert.is(connections, 2);
    const shown = async () =>
      (await lastSample(db.pool, undefined))!.sample!.deliveries.map(([, , , , status, n]) => [
        status,
        n,
      ]);
    assert.equal(await shown(), [['processing', 3]]);
    await takeSample(db.planes, { isDue: () => true, timeoutMs, countsMax });
    assert.equal(await shown(), [['retry', 3]]);
  },
);

samples('a pool of one connection is enough for a sample', async () => {
  await acceptEvents(db.pool, batch(newEvents(2)));
  const single = openUrl(db.url, 1);
  try {
    await within(
      takeSample(bothPlanes(single), { isDue: () => true, timeoutMs, countsMax }),
      10_000,
      'a sample by one connection',
    );
    assert.equal((await lastSample(single.pool, undefined))?.sample?.events, [
      [PROJECT, SOURCE, 'processed', 2, null],
    ]);
  } finally {
    await single.close();
  }
});

onPostgres(samples)('no statement of a sample reads what is over', async () => {
  const { id: endpointId } = { id: newId() };
  for (let k = 0; k < 8; k++) {
    const events = newEvents(500);
    const made = events.map((event) => newDelivery(event, { endpointId }));
    await acceptEvents(db.pool, batch(events, { deliveries: made }));
    await recordAttempts(
      db.pool,
      k === 0
        ? made.slice(10).map((delivery) => attempt(delivery))
        : made.map((delivery) => attempt(delivery)),
    );
  }
  await applyPendingDeltas(db.pool);
  // Until then the partial indexes contain entries of finished rows.
  await db.rows('vacuum analyze events, event_deliveries, delivery_attempts');
  const client = await db.pool.connect();
  try {
    for (const [name, { groups }] of Object.entries(COUNTINGS)) {
      const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(
        `explain (analyze, buffers, timing off, format json) ${groups}`,
      );
      const { Plan: plan } = rows[0]!['QUERY PLAN'][0];
      const blocks = plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
      const [{ pages } = { pages: 0 }] = await db.rows<{ pages: number }>(
        `select sum(relpages)::int as pages from pg_class where relname ~ '^event_deliveries_[0-9d]' and relkind = 'r'`,
      );
      assert.ok(pages > 100, `${pages} pages of deliveries`);
      assert.ok(blocks < pages / 2, `${name} reads ${blocks} blocks: ${JSON.stringify(plan)}`);
      assert.is(readRows(plan), name === 'processing-deliveries' ? 10 : 0, name);
    }
  } finally {
    client.release();
  }
});

interface Node {
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly 'Actual Rows': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Node[];
}

/** Rows of the data plane's tables that a plan reads, including discarded ones. */
function readRows(node: Node): number {
  const own = /^(events|event_deliveries|delivery_attempts)_/.test(node['Relation Name'] ?? '')
    ? node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)
    : 0;
  return own + (node.Plans ?? []).reduce((total, child) => total + readRows(child), 0);
}

/**
 * Stored counts of `endpoints` endpoints with finished deliveries: 1, 2, 3 and so on, alternately
 * failures and successes.
 */
async function makeCounts(endpoints: number): Promise<void> {
  await db.rows(
    `insert into event_delivery_counts
     select $1, gen_random_uuid(), 'api', 'order.paid', (case when n % 2 = 0 then 'success' else 'failure' end)::event_delivery_status, n from generate_series(1, $2::int) n`,
    [PROJECT, endpoints],
  );
}

samples(
  'more counts than may be shown are summed up by project and status, the largest of what is not over are shown first',
  async () => {
    await makeCounts(10_100);
    const events = newEvents(45);
    await acceptEvents(
      db.pool,
      batch(events, {
        deliveries: events.map((event, n) =>
          newDelivery(event, {
            endpointId: n < 20 ? SOURCE : PROJECT,
            status: n < 30 ? 'processing' : 'scheduled',
          }),
        ),
      }),
    );
    const { sample } = await sampled(undefined, 20);
    assert.is(sample.deliveries.length, 20);
    assert.equal(
      sample.deliveries.slice(0, 4).map(([, , , , status, n]) => [status, n]),
      [
        ['processing', 20],
        ['scheduled', 15],
        ['processing', 10],
        ['success', 10_100],
      ],
    );
    const sum = (status: string) =>
      sample.deliveries.reduce((total, [, , , , it, n]) => total + (it === status ? n : 0), 0);
    assert.equal([sum('success'), sum('failure')], [5050 * 5051, 5050 * 5050]);
    assert.equal(
      sample.deliveries.slice(18).map(([project, endpoint, , type]) => [project, endpoint, type]),
      [
        [PROJECT, 'other', 'other'],
        [PROJECT, 'other', 'other'],
      ],
    );
    assert.ok(sample.hidden.deliveries > 9000);
  },
);

samples('where what is not over leaves no room, all that is over is summed up', async () => {
  await makeCounts(6);
  const events = newEvents(25);
  const made = events.map((event) =>
    newDelivery(event, { endpointId: newId(), status: 'processing' }),
  );
  await acceptEvents(db.pool, batch(events, { deliveries: made }));
  const { sample } = await sampled(undefined, 20);
  assert.equal(
    sample.deliveries
      .slice(18)
      .map(([, endpoint, , , status, n]) => `${endpoint} ${status} ${n}`)
      .sort(),
    ['other failure 9', 'other processing 7', 'other success 12'],
  );
  assert.equal([sample.deliveries.length, sample.hidden.deliveries], [21, 7 + 6]);
});

samples(
  'with more projects than may be summed up apart, what is not shown is summed up by status',
  async () => {
    await db.rows(
      `insert into event_counts select gen_random_uuid(), 'api', 'processed', n from generate_series(1, 100) n`,
    );
    const { sample } = await sampled(undefined, 20);
    assert.equal(sample.events.at(-1), ['other', 'other', 'processed', (82 * 83) / 2, null]);
    assert.is(sample.events.length, 19);
    assert.is(sample.hidden.events, 82);
  },
);

samples(
  'a sample is kept for all and comes back as it was; who has it already is not sent it again',
  async () => {
    const events = newEvents(3);
    await acceptEvents(
      db.pool,
      batch(events, { deliveries: events.map((event) => newDelivery(event)) }),
    );
    assert.is(await lastSample(db.pool, undefined), undefined);
    await takeSample(db.planes, { isDue: () => true, timeoutMs, countsMax });
    const kept = (await lastSample(db.pool, undefined))!;
    assert.ok(kept.age >= 0 && kept.age < 20);
    assert.equal(kept.sample?.events, [[PROJECT, SOURCE, 'processed', 3, null]]);
    assert.is(kept.sample?.deliveries[0]?.[5], 3);
    assert.is((await lastSample(db.pool, kept.takenAt))?.sample, null);
    await takeSample(db.planes, { isDue: () => false, timeoutMs, countsMax });
    assert.is((await lastSample(db.pool, kept.takenAt))?.takenAt, kept.takenAt);
    await takeSample(db.planes, { isDue: () => true, timeoutMs, countsMax });
    assert.ok((await lastSample(db.pool, kept.takenAt))?.sample);
  },
);

samples.run();
