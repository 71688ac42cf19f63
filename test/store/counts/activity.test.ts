import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { readActivity, readLatencies, readSummary } from '#store/counts/activity';
import { applyPendingDeltas } from '#store/counts/count-deltas';
import { recordAttempts } from '#store/deliveries/delivery-attempts';
import { acceptEvents } from '#store/events/events';
import { runMaintenance } from '#store/retention/maintenance';
import { attempt, batch, empty, newDelivery, newEvents, PROJECT } from '../batches.js';
import { forgetAllCounts } from '../counted.js';
import { makeEndpoint, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const activity = suite('store/counts/activity');

const db = await migratedDatabase();
activity.after(() => db.close());
activity.before.each(async () => {
  await empty(db);
  await forgetAllCounts(db);
});

const HOUR_MS = 3_600_000;
const range = {
  from: new Date(Date.now() - HOUR_MS),
  to: new Date(Date.now() + HOUR_MS),
  stepSeconds: 86_400,
};
const OTHER = newId();

/** Six deliveries, a third of them to another endpoint: four succeed and two fail permanently. */
async function work(projectId = PROJECT): Promise<string> {
  const events = newEvents(6, () => ({ projectId }));
  const deliveries = events.map((event, n) =>
    newDelivery(event, { projectId, ...(n % 3 === 0 ? { endpointId: OTHER } : {}) }),
  );
  await acceptEvents(db.pool, batch(events, { deliveries }));
  const failed = { status: 'failure', code: 500, errorClass: 'status' } as const;
  await recordAttempts(
    db.pool,
    deliveries.map((delivery, n) => attempt(delivery, n < 4 ? {} : failed)),
  );
  return deliveries[1]!.endpointId;
}

activity('what ended is counted by its time, of the project and of each endpoint', async () => {
  const endpointId = await work();
  await applyPendingDeltas(db.pool);
  await work();
  await applyPendingDeltas(db.pool);
  const [all, ...none] = await readActivity(db.pool, PROJECT, range);
  assert.equal(none, []);
  assert.equal(
    [all!.deliveries, all!.attempts],
    [
      { success: 8, failure: 4, discarded: 0 },
      { success: 8, failure: 4 },
    ],
  );
  const [one] = await readActivity(db.pool, PROJECT, { ...range, endpointId });
  assert.equal(one!.deliveries, { success: 4, failure: 4, discarded: 0 });
  assert.is((await readActivity(db.pool, newId(), range)).length, 0);
});

activity('steps are as long as asked for, and what is older or younger is left out', async () => {
  const row = (minutes: number, n: number) =>
    db.rows(
      `insert into activity values ($1, '00000000-0000-0000-0000-000000000000', date_bin('1 hour', now(), 'epoch') + make_interval(mins => $2), 'event', 'processed', $3)`,
      [...[PROJECT, minutes, n]],
    );
  for (const [minutes, n] of [
    [-180, 100],
    [0, 1],
    [9, 2],
    [10, 4],
    [59, 8],
  ] as const)
    await row(minutes, n);
  const [{ start }] = (await db.rows<{ start: Date }>(
    `select date_bin('1 hour', now(), 'epoch') as start`,
  )) as [{ start: Date }];
  const read = async (stepSeconds: number) => {
    const rows = await readActivity(db.pool, PROJECT, {
      from: start,
      to: new Date(start.getTime() + HOUR_MS),
      stepSeconds,
    });
    return rows.map(({ at, events }) => [
      (at.getTime() - start.getTime()) / 60_000,
      events.processed,
    ]);
  };
  assert.equal(await read(600), [
    [0, 3],
    [10, 4],
    [50, 8],
  ]);
  assert.equal(await read(3600), [[0, 15]]);
});

activity('old rows, and those of deleted endpoints and projects, are deleted', async () => {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  const row = (project: string, endpoint: string, age: string) =>
    db.rows(`insert into activity values ($1, $2, now() - $3::interval, 'attempt', 'success', 1)`, [
      project,
      endpoint,
      age,
    ]);
  await row(PROJECT, OTHER, '8 days');
  await row(PROJECT, OTHER, '6 days');
  await row(projectId, endpointId, '1 minute');
  await db.rows(`update endpoints set deleted_at = now() - interval '2 hours' where id = $1`, [
    endpointId,
  ]);
  await runMaintenance(db.planes);
  assert.equal(
    await db.rows(
      `select project_id, round(extract(epoch from now() - at) / 86400)::int as days from activity`,
    ),
    [{ project_id: PROJECT, days: 6 }],
  );
});

activity('a summary says what waits, and how long deliveries took', async () => {
  const empty_ = await readSummary(db.planes, PROJECT);
  assert.equal(
    [
      empty_.pending_events,
      empty_.oldest_pending_seconds,
      empty_.waiting_deliveries,
      empty_.latency_ms,
    ],
    [0, null, 0, null],
  );
  const { id: projectId } = await makeProject(db);
  await makeEndpoint(db, projectId);
  await work(projectId);
  const waiting = newEvents(3, () => ({
    projectId,
    sourceId: null,
    status: 'pending',
    outcome: null,
  }));
  await acceptEvents(db.pool, batch(waiting));
  const [first] = newEvents(1, () => ({ projectId }));
  await acceptEvents(
    db.pool,
    batch([first!], {
      deliveries: [newDelivery(first!, { projectId, status: 'scheduled', dueInMs: 0 })],
    }),
  );
  const summary = await readSummary(db.planes, projectId);
  assert.equal(
    [
      summary.pending_events,
      summary.waiting_deliveries,
      summary.processing_deliveries,
      summary.endpoints,
    ],
    [3, 1, 0, { active: 1, paused: 0, inactive: 0 }],
  );
  assert.is(summary.latency_ms!.deliveries, 4);
  assert.ok(summary.latency_ms!.p50 >= 0 && summary.latency_ms!.p99 >= summary.latency_ms!.p50);
  assert.ok(summary.oldest_pending_seconds! < 60);
  const hour = { from: range.from, to: new Date(), stepSeconds: 60 };
  const latencies = await readLatencies(db.pool, projectId, hour);
  assert.ok(latencies.length > 0);
  assert.ok(latencies.every(({ p50, p99 }) => p50 >= 0 && p99 >= p50));
  assert.equal(await readLatencies(db.pool, OTHER, hour), []);
});

activity.run();
