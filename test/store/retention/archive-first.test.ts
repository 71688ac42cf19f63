import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { GatewayError } from '#core/errors/errors';
import { acceptEvents } from '#store/events/events';
import type { ArchivedDelivery, ArchivedEvent, DayToWrite } from '#store/retention/archive';
import { readArchiveFailure, type Archive } from '#store/retention/archive-first';
import { pageStatement } from '#store/retention/expired-events';
import { ofDay } from '#store/retention/partitions';
import { applyRetention } from '#store/retention/retention';
import { batch, genericPlan, newDelivery, newEvent, readWhole } from '../batches.js';
import { at, count, dayOf, DAYS, type Db, finished, onFresh } from '../days-of-events.js';
import { makeProject } from '../made.js';

const retention = suite('store/retention/archive-first');

/** An archive in memory: the events by project and day. */
function memoryArchive() {
  const days = new Map<string, ArchivedEvent[]>();
  let failing: Error | undefined;
  let broken: string | undefined;
  const archive: Archive = {
    giveUpBefore: undefined,
    write: async ({ projectId, day, pages }: DayToWrite) => {
      const found: ArchivedEvent[] = [];
      for await (const page of pages(null)) found.push(...page);
      if (failing) throw failing;
      if (projectId === broken)
        throw new GatewayError('archive_broken', {
          place: '/archive',
          key: `project=${projectId}/day=${day}/_manifest.json`,
          reason: 'it is not the manifest of this day',
        });
      if (found.length > 0) {
        const key = `${projectId} ${day}`;
        days.set(key, [...(days.get(key) ?? []), ...found]);
      }
    },
  };
  return {
    archive,
    days,
    of: (projectId: string, day: number) => days.get(`${projectId} ${dayOf(day)}`) ?? [],
    fail: (error: Error | undefined) => (failing = error),
    breakOf: (projectId: string | undefined) => (broken = projectId),
  };
}

const forget = (db: Db, daysLater: number, archive: Archive | undefined) =>
  applyRetention(db.planes, { days: DAYS, now: new Date(at(daysLater)), archive });

const leftTables = async (db: Db) =>
  (
    await db.rows<{ name: string }>(
      `select relname as name from pg_class where relname ~ '_expired$' and relkind = 'r' order by 1`,
    )
  ).map(({ name }) => name);

retention('a day is archived by project with what became of it, and then dropped', () =>
  onFresh(async (db) => {
    const { id: projectId } = await makeProject(db);
    const { id: other } = await makeProject(db, 'other');
    await finished(db, 0, 2, projectId);
    await finished(db, 0, 1, other);
    const event = newEvent({
      projectId,
      occurredAtMs: at(0) + 100,
      data: ' {"n": 1.0}',
      idempotencyKey: 'key',
    });
    await acceptEvents(
      db.pool,
      batch([event], {
        deliveries: [newDelivery(event, { status: 'discarded', reason: 'endpoint_inactive' })],
      }),
    );
    const memory = memoryArchive();
    const { dropped, notArchived } = await forget(db, 31, memory.archive);
    assert.equal(
      dropped.map(({ day }) => day),
      [dayOf(-1), dayOf(0)],
    );
    assert.equal(
      [notArchived!.waiting, notArchived!.lost, notArchived!.error],
      [[], [], undefined],
    );
    assert.equal([memory.of(projectId, 0).length, memory.of(other, 0).length], [3, 1]);
    const archived = memory.of(projectId, 0).find(({ id }) => id === event.id)!;
    assert.equal(
      [archived.data, archived.idempotency_key, archived.occurred_at, archived.source_id],
      [' {"n": 1.0}', 'key', new Date(event.occurredAtMs), event.sourceId],
    );
    const outcomes = memory
      .of(projectId, 0)
      .map(({ deliveries }) => JSON.parse(deliveries) as ArchivedDelivery[])
      .flat()
      .map(({ status, reason }) => [status, reason])
      .sort();
    assert.equal(outcomes, [
      ['discarded', 'endpoint_inactive'],
      ['success', null],
      ['success', null],
    ]);
    assert.equal([await count(db, 'events'), await leftTables(db)], [0, []]);
  }),
);

retention('nothing of a deleted project is archived', () =>
  onFresh(async (db) => {
    const { id: projectId } = await makeProject(db);
    await finished(db, 0, 2, projectId);
    await db.rows('update projects set deleted_at = now()');
    const memory = memoryArchive();
    assert.is((await forget(db, 31, memory.archive)).dropped.length, 2);
    assert.equal([...memory.days], []);
  }),
);

retention(
  'while the archive fails the day is kept and the failure recorded; the next run archives and drops all',
  () =>
    onFresh(async (db) => {
      const { id: projectId } = await makeProject(db);
      await finished(db, 0, 2, projectId);
      await finished(db, 1, 3, projectId);
      const memory = memoryArchive();
      memory.fail(new Error('nothing listens there'));
      const first = await forget(db, 32, memory.archive);
      assert.equal(
        first.dropped.map(({ day }) => day),
        [dayOf(-1)],
        'it has no events',
      );
      assert.equal(first.notArchived!.waiting, [dayOf(0), dayOf(1)]);
      assert.is(String(first.notArchived!.error), 'Error: nothing listens there');
      assert.is(await count(db, 'events'), 3, 'the second day was not detached');
      assert.is((await leftTables(db)).length, 4);
      const failure = await readArchiveFailure(db.pool, projectId);
      assert.is(failure!.reason, 'nothing listens there');
      assert.is((await forget(db, 32, memory.archive)).dropped.length, 0);
      assert.equal((await readArchiveFailure(db.pool, projectId))!.since, failure!.since);

      memory.fail(undefined);
      const second = await forget(db, 32, memory.archive);
      assert.equal(
        second.dropped.map(({ day }) => day),
        [dayOf(0), dayOf(1)],
      );
      assert.equal([memory.of(projectId, 0).length, memory.of(projectId, 1).length], [2, 3]);
      assert.is(await readArchiveFailure(db.pool, projectId), undefined);
      assert.equal(await leftTables(db), []);
    }),
);

retention(
  'however long the archive fails, only days before archive.give_up_before are dropped without a copy',
  () =>
    onFresh(async (db) => {
      const { id: projectId } = await makeProject(db);
      for (const day of [0, 1, 5]) await finished(db, day, 1, projectId);
      const memory = memoryArchive();
      memory.fail(new Error('nothing listens there'));
      await forget(db, 46, memory.archive);
      await db.rows(`update archive_failure set since = now() - interval '1 year'`);
      assert.equal((await forget(db, 46, memory.archive)).notArchived!.lost, []);
      const { dropped, notArchived } = await forget(db, 46, {
        ...memory.archive,
        giveUpBefore: dayOf(2),
      });
      assert.equal(notArchived!.lost, [
        { projectId, day: dayOf(0) },
        { projectId, day: dayOf(1) },
      ]);
      assert.equal(
        dropped.filter(({ day }) => [0, 1, 5].map(dayOf).includes(day)).map(({ day }) => day),
        [dayOf(0), dayOf(1)],
      );
      assert.ok(notArchived!.waiting.includes(dayOf(5)));
      assert.is(await count(db, 'events'), 1);
    }),
);

retention('a broken manifest of one project keeps the days of that project alone', () =>
  onFresh(async (db) => {
    const { id: projectId } = await makeProject(db);
    const { id: other } = await makeProject(db, 'other');
    for (const id of [projectId, other]) for (const day of [0, 1]) await finished(db, day, 2, id);
    await finished(db, 2, 1, other);
    const memory = memoryArchive();
    memory.breakOf(projectId);
    const first = await forget(db, 33, memory.archive);
    assert.equal(
      first.dropped.map(({ day }) => day),
      [dayOf(-1), dayOf(2)],
    );
    assert.equal(
      [0, 1, 2].map((day) => memory.of(other, day).length),
      [2, 2, 1],
    );
    assert.equal(first.notArchived!.waiting, [dayOf(0), dayOf(1)]);
    const left = async () =>
      (await leftTables(db))
        .filter((name) => name.startsWith('events_'))
        .map((name) => db.rows<{ project_id: string }>(`select project_id from ${name}`));
    const rows = (await Promise.all(await left())).flat();
    assert.equal(
      rows,
      [1, 2, 3, 4].map(() => ({ project_id: projectId })),
    );
    const failure = await readArchiveFailure(db.pool, projectId);
    assert.ok(failure!.isOfProject);
    assert.match(failure!.reason, `project=${projectId}/day=`);
    assert.is(await readArchiveFailure(db.pool, other), undefined);

    memory.breakOf(undefined);
    const second = await forget(db, 33, memory.archive);
    assert.equal(
      second.dropped.map(({ day }) => day),
      [dayOf(0), dayOf(1)],
    );
    assert.equal(
      [0, 1].map((day) => memory.of(projectId, day).length),
      [2, 2],
    );
    assert.equal(
      [0, 1].map((day) => memory.of(other, day).length),
      [2, 2],
      'not archived twice',
    );
    assert.is(await readArchiveFailure(db.pool, projectId), undefined);
  }),
);

retention(
  'a day that waits for the archive is dropped when there is no archive any more, and the failure is forgotten',
  () =>
    onFresh(async (db) => {
      const { id: projectId } = await makeProject(db);
      await finished(db, 0, 2, projectId);
      const memory = memoryArchive();
      memory.fail(new Error('away'));
      await forget(db, 31, memory.archive);
      assert.equal(
        (await forget(db, 31, undefined)).dropped.map(({ day }) => day),
        [dayOf(0)],
      );
      assert.equal(
        [await leftTables(db), await readArchiveFailure(db.pool, projectId)],
        [[], undefined],
      );
    }),
);

retention(
  'rows of a project with its own retention are archived before they are deleted, and none while one of the day is unfinished or new',
  () =>
    onFresh(async (db) => {
      const { id: projectId } = await makeProject(db, 'short', { retention: { days: 1 } });
      const { id: other } = await makeProject(db, 'other');
      await finished(db, 0, 2, projectId);
      await finished(db, 0, 1, other);
      const waiting = newEvent({ projectId, occurredAtMs: at(0) + 50 });
      await acceptEvents(
        db.pool,
        batch([waiting], {
          deliveries: [newDelivery(waiting, { status: 'scheduled', dueInMs: Infinity })],
        }),
      );
      const memory = memoryArchive();
      assert.is((await forget(db, 5, memory.archive)).rowsDeleted, 0);
      assert.equal([...memory.days], []);
      await db.rows(
        `update event_deliveries set status = 'success', next_attempt_at = null where status = 'scheduled'`,
      );
      memory.fail(new Error('away'));
      assert.is((await forget(db, 5, memory.archive)).rowsDeleted, 0);
      memory.fail(undefined);
      assert.is((await forget(db, 5, memory.archive)).rowsDeleted, 6);
      assert.equal([memory.of(projectId, 0).length, memory.of(other, 0).length], [3, 0]);
      assert.is(await count(db, 'events'), 1);
    }),
);

retention('rows of the default partition are archived by their day before they are deleted', () =>
  onFresh(async (db) => {
    const { id: projectId } = await makeProject(db);
    await finished(db, -200, 2, projectId);
    await finished(db, -198, 1, projectId);
    await finished(db, 400, 1, projectId);
    const memory = memoryArchive();
    assert.is((await forget(db, 0, memory.archive)).rowsDeleted, 0, 'they were written today');
    assert.is((await forget(db, 50, memory.archive)).rowsDeleted, 8);
    assert.equal(
      [-200, -198, 400].map((day) => memory.of(projectId, day).length),
      [2, 1, 1],
    );
    assert.is(await count(db, 'events'), 0);
  }),
);

retention('pages are small, and found by primary keys, however large the day is', () =>
  onFresh(async (db) => {
    const { id: projectId } = await makeProject(db);
    const data = JSON.stringify('x'.repeat(10_000));
    await finished(db, 0, 1100, projectId);
    await db.rows('update events set data = $1 where (right(id::text, 1)) < $2', [data, '8']);
    await db.rows('analyze');
    const pages: ArchivedEvent[][] = [];
    const archive: Archive = {
      giveUpBefore: undefined,
      write: async (day) => {
        for await (const page of day.pages(null)) pages.push([...page]);
      },
    };
    await forget(db, 31, archive);
    const ids = pages.flat().map(({ id }) => id);
    assert.is(new Set(ids).size, 1100);
    assert.equal(ids, [...ids].sort());
    for (const page of pages) {
      const bytes = page.reduce((sum, it) => sum + it.data.length, 0);
      assert.ok(page.length <= 500 && bytes < 540_000, `${page.length} events, ${bytes} bytes`);
    }
    await finished(db, 2, 1500, projectId);
    await db.rows('analyze');
    for (const isPartial of [false, true]) {
      const text = pageStatement(ofDay(dayOf(2)), isPartial);
      const plan = await genericPlan(db, text);
      assert.equal(readWhole(plan), [], `${text}\n${plan}`);
    }
  }),
);

retention('with a time, only events that were written or delivered since are read', () =>
  onFresh(async (db) => {
    const { id: projectId } = await makeProject(db);
    await finished(db, 0, 3, projectId);
    const ids = (await db.rows<{ id: string }>('select id from events order by id')).map(
      ({ id }) => id,
    );
    await db.rows(`update events set accepted_at = '2020-01-01' where id <> $1`, [ids[0]]);
    await db.rows(`update event_deliveries set created_at = '2020-01-01' where event_id = $1`, [
      ids[1],
    ]);
    const found: string[] = [];
    const archive: Archive = {
      giveUpBefore: undefined,
      write: async (day) => {
        for await (const page of day.pages(new Date('2021-01-01')))
          found.push(...page.map(({ id }) => id));
      },
    };
    await forget(db, 31, archive);
    assert.equal(found, [ids[0], ids[2]]);
  }),
);

retention.run();
