import type { Pool, PoolClient } from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { releaseDeliveries } from '#store/deliveries/claims';
import {
  expediteDeliveries,
  postponeDue,
  WAIT_REASONS,
  type Wait,
} from '#store/deliveries/postponed-deliveries';
import { empty } from '../batches.js';
import { makeDelivery, makeEndpoint, makeEvents, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const postponed = suite('store/deliveries/postponed-deliveries');

const db = await migratedDatabase();
postponed.after(() => db.close());
postponed.after.each(() => empty(db));

/** Creates a project with endpoints with these numbers of due deliveries. */
async function scene(
  ...counts: number[]
): Promise<{ projectId: string; endpointIds: string[]; deliveries: string[][] }> {
  const { id: projectId } = await makeProject(db);
  const endpointIds: string[] = [];
  const deliveries: string[][] = [];
  for (const [k, count] of counts.entries()) {
    const { id } = await makeEndpoint(db, projectId);
    const events = await makeEvents(
      db,
      projectId,
      Array.from({ length: count }, (_, n) => ({ atMs: Date.now() - 60_000 - k * 1_000 - n })),
    );
    endpointIds.push(id);
    const ids: string[] = [];
    for (const eventId of events)
      ids.push(
        await makeDelivery(db, {
          projectId,
          eventId,
          endpointId: id,
          status: 'retry',
          attempts: 2,
        }),
      );
    deliveries.push(ids);
  }
  return { projectId, endpointIds, deliveries };
}

/** Seconds until the deliveries of an endpoint are due, earliest first, and their reasons. */
const waitsOf = (endpointId: string) =>
  db.rows<{ seconds: number; reason: string | null; attempts: number; status: string }>(
    `select extract(epoch from next_attempt_at - now())::float8 as seconds, reason, attempts, status::text from event_deliveries where endpoint_id = $1 order by next_attempt_at`,
    [endpointId],
  );

const wait = (more: Partial<Wait> = {}): Wait => ({
  reason: 'breaker',
  dueInMs: 100_000,
  spreadMs: 0,
  paceMs: 0,
  ...more,
});

postponed(
  'what is due is put off for its endpoint alone, keeps its attempts, and says why',
  async () => {
    const { projectId, endpointIds } = await scene(3, 2);
    const [one, other] = endpointIds as [string, string];
    const counts = await postponeDue(db.pool, projectId, [{ endpointId: one, wait: wait() }]);
    assert.equal([...counts], [[one, 3]]);
    for (const { seconds, reason, attempts, status } of await waitsOf(one)) {
      assert.ok(seconds > 60 && seconds <= 100, `${seconds} s`);
      assert.equal([reason, attempts, status], [WAIT_REASONS.breaker, 2, 'retry']);
    }
    assert.ok(
      (await waitsOf(other)).every(({ seconds, reason }) => seconds <= 0 && reason === null),
    );
    assert.equal(
      [...(await postponeDue(db.pool, projectId, [{ endpointId: one, wait: wait() }]))],
      [],
      'what is not due is left alone',
    );
  },
);

postponed('by pace they come one after the other, by spread at any time within it', async () => {
  const { projectId, endpointIds } = await scene(4, 20);
  const [paced, spread] = endpointIds as [string, string];
  await postponeDue(db.pool, projectId, [
    { endpointId: paced, wait: wait({ reason: 'rate_limit', paceMs: 10_000 }) },
    { endpointId: spread, wait: wait({ spreadMs: 100_000 }) },
  ]);
  const times = (await waitsOf(paced)).map(({ seconds }) => seconds);
  const gaps = times.slice(1).map((seconds, n) => Math.round(seconds - times[n]!));
  assert.equal(gaps, [10, 10, 10]);
  const others = (await waitsOf(spread)).map(({ seconds }) => seconds);
  assert.ok(
    others[0]! > 60 && others.at(-1)! <= 200 && others.at(-1)! - others[0]! > 30,
    others.join(),
  );
});

postponed('what is claimed or locked is not put off, and nobody waits for it', async () => {
  const { projectId, endpointIds, deliveries } = await scene(2);
  const [endpointId] = endpointIds as [string];
  const client = await db.pool.connect();
  try {
    await client.query('begin');
    await client.query('select from event_deliveries where id = $1 for update', [
      deliveries[0]![0],
    ]);
    assert.equal(
      [...(await postponeDue(db.pool, projectId, [{ endpointId, wait: wait() }]))],
      [[endpointId, 1]],
    );
  } finally {
    await client.query('rollback');
    client.release();
  }
});

postponed('what waits for one reason is hastened, and the agents are told', async () => {
  const { projectId, endpointIds } = await scene(3, 3);
  const [one, other] = endpointIds as [string, string];
  await postponeDue(db.pool, projectId, [
    { endpointId: one, wait: wait() },
    { endpointId: other, wait: wait({ reason: 'slow' }) },
  ]);
  assert.is(await expediteDeliveries(db.planes, { projectId, endpointId: one }, ['rate_limit']), 0);
  assert.is(await expediteDeliveries(db.planes, { projectId, endpointId: one }, ['breaker']), 3);
  assert.ok((await waitsOf(one)).every(({ seconds, reason }) => seconds < 30 && reason === null));
  assert.ok(
    (await waitsOf(other)).every(
      ({ seconds, reason }) => seconds > 30 && reason === WAIT_REASONS.slow,
    ),
  );
});

/** Creates a project with an endpoint whose deliveries wait for `reason`, or are due. */
async function waitingFor(
  reason: string | null,
  count: number,
): Promise<{ projectId: string; endpointId: string }> {
  const { projectId, endpointIds } = await scene(0);
  const [endpointId] = endpointIds as [string];
  await db.pool.query(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, reason, next_attempt_at)
     select $1, gen_random_uuid(), now() - n * interval '1 millisecond', gen_random_uuid(), $2, 'scheduled', $3,
            now() + case when $3::text is null then 0 else 100 + n end * interval '1 second'
     from generate_series(1, $4::int) n`,
    [projectId, endpointId, reason, count],
  );
  return { projectId, endpointId };
}

/** Returns the deliveries that `work` reads by an index, on a session that has planned it before. */
async function readBy(client: PoolClient, work: () => Promise<unknown>): Promise<number> {
  await client.query('begin');
  await work();
  const { rows } = await client.query<{ n: number }>(
    `select sum(idx_tup_fetch)::int as n from pg_stat_xact_user_tables where relname like 'event_deliveries%'`,
  );
  await client.query('commit');
  return rows[0]!.n;
}

postponed(
  'each delivery is found by its key, although the statement was planned on an empty day',
  async () => {
    const client = await db.pool.connect();
    const data = client as unknown as Pool;
    const postpone = ({ projectId, endpointId }: { projectId: string; endpointId: string }) =>
      postponeDue(data, projectId, [{ endpointId, wait: wait() }]);
    const expedite = (endpoint: { projectId: string; endpointId: string }) =>
      expediteDeliveries({ control: db.pool, data }, endpoint, ['slow']);
    try {
      const none = await waitingFor(null, 0);
      await postpone(none);
      await expedite(none);
      const due = await waitingFor(null, 1_000);
      const slow = await waitingFor(WAIT_REASONS.slow, 1_000);
      // A few each: the scan, the lock and the update. Any index of the project would need a million.
      const ofPostpone = await readBy(client, () => postpone(due));
      assert.ok(ofPostpone < 10_000, `${ofPostpone} read to postpone 1,000`);
      const ofExpedite = await readBy(client, () => expedite(slow));
      assert.ok(ofExpedite < 10_000, `${ofExpedite} read to expedite 1,000`);
    } finally {
      client.release();
    }
  },
);

postponed('several agents that expedite the same backlog make no more of it due', async () => {
  const endpoint = await waitingFor(WAIT_REASONS.slow, 10_000);
  const beganMs = performance.now();
  for (let agent = 0; agent < 2; agent++)
    assert.is(await expediteDeliveries(db.planes, endpoint, ['slow']), 5_000);
  const tookMs = performance.now() - beganMs;
  const [{ n } = { n: -1 }] = await db.rows<{ n: number }>(
    `select count(*)::int as n from event_deliveries where next_attempt_at < now() + interval '30 seconds'`,
  );
  // 5,000 in 5 seconds: those of each millisecond that passes leave room for as many.
  assert.ok(n >= 5_000 && n < 5_100 + 2 * tookMs, `${n} due soon, after ${tookMs} ms`);
});

postponed('what is given back to wait says why, and is spread', async () => {
  const { projectId, endpointIds, deliveries } = await scene(10);
  const [endpointId] = endpointIds as [string];
  await db.pool.query(
    `update event_deliveries set status = 'processing', claimed_by = 7, next_attempt_at = null where endpoint_id = $1`,
    [endpointId],
  );
  const rows = await db.rows<{ id: string; ms: string }>(
    'select id, (extract(epoch from occurred_at) * 1000)::bigint as ms from event_deliveries',
  );
  const refs = rows
    .filter(({ id }) => deliveries[0]!.includes(id))
    .map(({ id, ms }) => ({ projectId, id, endpointId, occurredAtMs: Number(ms) }));
  await releaseDeliveries(db.pool, 7, refs, {
    to: 'due',
    dueInMs: 100_000,
    spreadMs: 100_000,
    reason: 'slow',
  });
  const found = await waitsOf(endpointId);
  assert.is(found.length, 10);
  assert.ok(
    found.every(
      ({ seconds, reason, status }) =>
        seconds > 60 && seconds <= 200 && reason === WAIT_REASONS.slow && status === 'retry',
    ),
  );
  assert.ok(found.at(-1)!.seconds - found[0]!.seconds > 10);
});

postponed.run();
