import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { readBacklog, sampleBacklog } from '#store/counts/backlog';
import { runMaintenance } from '#store/retention/maintenance';
import { empty, PROJECT } from '../batches.js';
import { forgetAllCounts } from '../counted.js';
import { migratedDatabase } from '../migrated.js';

const backlog = suite('store/counts/backlog');

const db = await migratedDatabase();
backlog.after(() => db.close());
backlog.before.each(async () => {
  await empty(db);
  await forgetAllCounts(db);
});

const HOUR_MS = 3_600_000;
const range = { from: new Date(Date.now() - HOUR_MS), to: new Date(Date.now() + HOUR_MS) };

async function wait(count: number, next: string): Promise<void> {
  await db.rows(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, next_attempt_at)
     select $1, gen_random_uuid(), now(), gen_random_uuid(), gen_random_uuid(), 'scheduled', ${next} from generate_series(1, $2)`,
    [PROJECT, count],
  );
}

backlog('what is due now or later is counted once a minute, and what is held is not', async () => {
  await wait(2, 'now()');
  await wait(3, `now() + interval '1 hour'`);
  await wait(4, `'infinity'`);
  await sampleBacklog(db.pool);
  const read = async (projectId: string) =>
    (await readBacklog(db.pool, projectId, { ...range, stepSeconds: 86_400 })).map(
      ({ pending_events, waiting_deliveries }) => [pending_events, waiting_deliveries],
    );
  assert.equal(await read(PROJECT), [[0, 5]]);
  assert.equal(await read(newId()), [[0, 0]], 'a counted minute without a row is zero');
  const [first] = await db.rows<{ n: string }>('select count(*) as n from backlog_samples');
  assert.is(Number(first!.n), 2);
});

backlog('a minute that is counted is not counted again', async () => {
  await db.rows(
    `insert into backlog_samples
     select project_id, date_bin('1 minute', now(), 'epoch') + n * interval '1 minute', 0, 0 from generate_series(0, 1) n, (values ('00000000-0000-0000-0000-000000000000'::uuid)) p(project_id)`,
  );
  await wait(2, 'now()');
  await sampleBacklog(db.pool);
  const [row] = await db.rows<{ n: string }>('select count(*) as n from backlog_samples');
  assert.is(Number(row!.n), 2);
});

backlog(
  'a step has the most of its minutes, and one without a sample is left out, not zero',
  async () => {
    const start = new Date(Date.parse('2026-11-20T10:00:00Z'));
    const sample = (projectId: string, minute: number, waiting: number) =>
      db.rows(`insert into backlog_samples values ($1, $2, 0, $3)`, [
        projectId,
        new Date(start.getTime() + minute * 60_000),
        waiting,
      ]);
    for (const [minute, waiting] of [
      [0, 1],
      [3, 7],
      [20, 2],
    ] as const) {
      await sample('00000000-0000-0000-0000-000000000000', minute, 0);
      await sample(PROJECT, minute, waiting);
    }
    const times = { from: start, to: new Date(start.getTime() + HOUR_MS), stepSeconds: 600 };
    const steps = await readBacklog(db.pool, PROJECT, times);
    assert.equal(
      steps.map(({ at, waiting_deliveries }) => [
        (at.getTime() - start.getTime()) / 60_000,
        waiting_deliveries,
      ]),
      [
        [0, 7],
        [20, 2],
      ],
    );
    await db.rows(`update backlog_samples set at = now() - interval '8 days' where at = $1`, [
      start,
    ]);
    await runMaintenance(db.planes);
    const [row] = await db.rows<{ n: string }>(
      `select count(*) as n from backlog_samples where at < now() - interval '7 days'`,
    );
    assert.is(Number(row!.n), 0);
  },
);

backlog.run();
