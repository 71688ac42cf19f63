import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deleteProject, updateProject } from '#store/config/projects';
import { applyPendingDeltas } from '#store/counts/count-deltas';
import { acceptEvents } from '#store/events/events';
import { applyRetention } from '#store/retention/retention';

import { until } from '../../support/until.js';
import { makeProject } from '../made.js';
import { batch, lockAwaited, newDelivery, newEvent, PROJECT } from '../batches.js';
import {
  at,
  count,
  counts,
  dayOf,
  DAYS,
  finished,
  forget,
  NOTHING,
  onFresh,
  type Db,
} from '../days-of-events.js';

const times = suite('store/retention/cutoffs');

const keeping = async (db: Db, days: number) =>
  (await makeProject(db, 'orders', { retention: { days } })).id;

async function rowsOf(db: Db, project: string): Promise<number[]> {
  const [found] = await db.rows<{ n: number[] }>(
    `select array[(select count(*) from events where project_id = $1), (select count(*) from event_deliveries where project_id = $1),
                  (select count(*) from delivery_attempts where project_id = $1)]::int[] as n`,
    [project],
  );
  return found!.n;
}

const droppedDays = (done: { dropped: readonly { day: string }[] }) =>
  done.dropped.map(({ day }) => day);

function whileLocked(
  db: Db,
  table: string,
  mode: string,
  work: () => Promise<void>,
): Promise<void> {
  return during(db, `lock table ${table} in ${mode} mode`, work);
}

/** Locks rows, which Citus has on a worker: a lock of the table would not reach it. */
const lockAttempts = `select from delivery_attempts where occurred_at::date = '${dayOf(0)}' for update`;

/** Runs the work in the transaction of a statement. */
async function during(db: Db, statement: string, work: () => Promise<void>): Promise<void> {
  const other = await db.connect();
  try {
    await other.query('begin');
    await other.query(statement);
    await work();
    await other.query('commit');
  } finally {
    await other.end();
  }
}

times(
  'of a project that keeps fewer days the finished rows go, and what is not finished stays, as do the rows of others and what is counted',
  () =>
    onFresh(async (db) => {
      const short = await keeping(db, 7);
      await finished(db, 0, 1100, short);
      await finished(db, 0, 3);
      const open = newEvent({ projectId: short, occurredAtMs: at(0) });
      await acceptEvents(db.pool, batch([open], { deliveries: [newDelivery(open)] }));
      await applyPendingDeltas(db.pool);
      const counted = () =>
        db.rows('select project_id, source, status, n from event_counts order by 1');
      const before = await counted();
      assert.ok(before.length > 0);

      assert.equal(await forget(db, 7), NOTHING);
      assert.equal(await forget(db, 8), { ...NOTHING, rowsDeleted: 2200 });
      assert.equal(await rowsOf(db, short), [1, 1, 0]);
      assert.equal(await rowsOf(db, PROJECT), [3, 3, 3]);
      await applyPendingDeltas(db.pool);
      assert.equal(await counted(), before);
      assert.equal(await forget(db, 8), NOTHING);
    }),
);

times(
  'a day goes early when all who have rows in it keep fewer days, but not while one of them is not finished',
  () =>
    onFresh(async (db) => {
      const [week, fortnight] = [await keeping(db, 7), await keeping(db, 14)];
      await finished(db, 0, 3, week);
      await finished(db, 0, 3, fortnight);
      const open = newEvent({ projectId: week, occurredAtMs: at(0) });
      await acceptEvents(db.pool, batch([open], { deliveries: [newDelivery(open)] }));
      assert.equal(await forget(db, 8), { ...NOTHING, rowsDeleted: 6 });
      assert.equal(await forget(db, 15), { ...NOTHING, unfinished: [dayOf(0)], rowsDeleted: 6 });
      await db.rows(`update event_deliveries set status = 'success', claimed_by = null`);
      assert.equal(droppedDays(await forget(db, 15)), [dayOf(0)]);
      assert.equal(await counts(db), [0, 0, 0]);
    }),
);

times(
  'a project that keeps more days keeps the day for its own rows alone; without it, and when it is deleted, the day goes as ever',
  () =>
    onFresh(async (db) => {
      const [long, deleted] = [await keeping(db, 60), await keeping(db, 90)];
      await finished(db, 0, 3, long);
      await finished(db, 0, 4);
      await finished(db, 1, 3, deleted);
      await finished(db, 1, 3);
      await deleteProject(db.knex, deleted);
      await finished(db, 2);
      assert.equal((await forget(db, 31)).kept, [dayOf(0)]);
      assert.equal(
        [await rowsOf(db, long), await rowsOf(db, PROJECT)],
        [
          [3, 3, 3],
          [6, 6, 6],
        ],
      );
      assert.equal(droppedDays(await forget(db, 33)), [dayOf(1), dayOf(2)]);
      assert.equal(await counts(db), [3, 3, 3]);
      assert.equal((await forget(db, 60)).kept, [dayOf(0)]);
      assert.ok(droppedDays(await forget(db, 61)).includes(dayOf(0)));
      assert.equal(await counts(db), [0, 0, 0]);
    }),
);

times(
  'a change holds at the next look, in both directions, and none is the same as the days of the instance',
  () =>
    onFresh(async (db) => {
      const { id: project } = await makeProject(db);
      const days = (config: object) => updateProject(db.knex, project, { config });
      await finished(db, 0, 3, project);
      await finished(db, 1, 3, project);
      assert.equal(droppedDays(await forget(db, 10)), []);
      await days({ retention: { days: 9 } });
      assert.equal(droppedDays(await forget(db, 10)), [dayOf(0)]);
      await days({});
      assert.equal(droppedDays(await forget(db, 11)), []);
      await days({ retention: { days: 100 } });
      assert.ok(!droppedDays(await forget(db, 99)).includes(dayOf(1)));
      assert.equal(await rowsOf(db, project), [3, 3, 3]);
    }),
);

times('rows without a day of their own go by the days of their project as well', () =>
  onFresh(async (db) => {
    const [short, long] = [await keeping(db, 7), await keeping(db, 60)];
    for (const project of [short, long, PROJECT]) await finished(db, -200, 2, project);
    assert.is((await forget(db, 8)).rowsDeleted, 4);
    assert.is(await count(db, 'events_default'), 4);
    assert.is((await forget(db, 31)).rowsDeleted, 4);
    assert.equal(await rowsOf(db, long), [2, 2, 2]);
    assert.is((await forget(db, 61)).rowsDeleted, 4);
  }),
);

times(
  'agents that look at the same time delete each row once, also while a backup reads the tables',
  () =>
    onFresh(async (db) => {
      const short = await keeping(db, 7);
      await finished(db, 0, 1500, short);
      await finished(db, 0);
      const day = `event_deliveries, event_deliveries_${dayOf(0).replaceAll('-', '')}`;
      await whileLocked(db, day, 'access share', async () => {
        const done = await Promise.all([1, 2, 3].map(() => forget(db, 8)));
        assert.is(
          done.reduce((sum, { rowsDeleted }) => sum + rowsDeleted, 0),
          3000,
        );
      });
      assert.equal(await rowsOf(db, short), [0, 0, 0]);
    }),
);

times(
  'it ends with the statement that is under way when its agent ends, and goes on from there the next time',
  () =>
    onFresh(async (db) => {
      const short = await keeping(db, 7);
      await finished(db, 0, 2500, short);
      await finished(db, 0);
      const stop = new AbortController();
      let forgetting = Promise.resolve(NOTHING as Awaited<ReturnType<typeof applyRetention>>);
      await during(db, lockAttempts, async () => {
        forgetting = applyRetention(db.planes, {
          days: DAYS,
          now: new Date(at(8)),
          signal: stop.signal,
        });
        await lockAwaited(db, 'the first rows to be deleted');
        stop.abort();
      });
      assert.is((await forgetting).rowsDeleted, 1000);
      assert.is((await forget(db, 8)).rowsDeleted, 4000);
    }),
);

times('whoever keeps for longer while rows are deleted loses nothing more', () =>
  onFresh(async (db) => {
    const short = await keeping(db, 7);
    for (const day of [0, 1]) {
      await finished(db, day, 3, short);
      await finished(db, day);
    }
    let forgetting = Promise.resolve(NOTHING as Awaited<ReturnType<typeof applyRetention>>);
    await during(db, lockAttempts, async () => {
      forgetting = forget(db, 9);
      await lockAwaited(db, 'the first rows to be deleted');
      await updateProject(db.knex, short, { config: { retention: { days: 8 } } });
    });
    assert.is((await forgetting).rowsDeleted, 6);
    await until('the other day to be as it was', async () => (await rowsOf(db, short))[0] === 3);
  }),
);

times('a day that somebody asks to keep while its drop waits for a lock is kept', () =>
  onFresh(async (db) => {
    const short = await keeping(db, 7);
    await finished(db, 0, 3, short);
    let forgetting = Promise.resolve(NOTHING as Awaited<ReturnType<typeof applyRetention>>);
    await whileLocked(db, 'delivery_attempts', 'access share', async () => {
      forgetting = forget(db, 8);
      await lockAwaited(db, 'the drop of the day');
      await updateProject(db.knex, short, { config: { retention: { days: 8 } } });
    });
    assert.equal(droppedDays(await forgetting), []);
    assert.equal(await rowsOf(db, short), [3, 3, 3]);
  }),
);

times.run();
