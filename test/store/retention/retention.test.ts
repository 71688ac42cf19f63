import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { acceptEvents, type StorableEvent } from '#store/events/events';
import { keptParts } from '#store/events/kept-messages';
import { quarantineMessages } from '#store/quarantine/messages';
import { runMaintenance } from '#store/retention/maintenance';
import { applyRetention } from '#store/retention/retention';
import { unfinished } from '#store/retention/retention';
import { isOnCitus } from '../../support/database.js';
import { until } from '../../support/until.js';
import {
  batch,
  newDelivery,
  newEvent,
  newEvents,
  onPostgres,
  pendingEvent,
  quarantinedMessage,
  sorted,
} from '../batches.js';
import {
  at,
  count,
  counts,
  DAY_MS,
  dayOf,
  DAYS,
  type Db,
  finish,
  finished,
  forget,
  NOTHING,
  onFresh,
  TABLES,
} from '../days-of-events.js';
import { makeProject } from '../made.js';

const retention = suite('store/retention/retention');

async function partitions(db: Db, day: number): Promise<string[]> {
  const names = TABLES.map((table) => `${table}_${dayOf(day).replaceAll('-', '')}`);
  const found = await db.rows<{ name: string }>(
    `select relname as name from pg_class where relname = any ($1) order by 1`,
    [names],
  );
  return found.map(({ name }) => name.slice(0, -9)).sort();
}

/** Returns the outcome of a dropped day. To the coordinator of Citus, its tables are empty. */
function estimated(day: number, rows: number) {
  const n = isOnCitus ? 0 : rows;
  return { day: dayOf(day), events: n, event_deliveries: n, delivery_attempts: n };
}

retention(
  'days that are older are dropped from all three tables with their rows, younger ones are kept; no lock and no setting stays',
  () =>
    onFresh(async (db) => {
      await finished(db, 0);
      await finished(db, 1);
      await db.rows('analyze');
      assert.equal(await forget(db, 30), {
        ...NOTHING,
        dropped: [estimated(-1, 0)],
      });
      const { dropped, unfinished } = await forget(db, 31);
      assert.equal(dropped, [estimated(0, 3)]);
      assert.equal(unfinished, []);
      assert.equal(await partitions(db, 0), []);
      assert.equal(await partitions(db, 1), [...TABLES].sort());
      assert.equal(await counts(db), [3, 3, 3]);
      assert.equal(await forget(db, 31), NOTHING);

      const [connection] = (await db.pool.query<{ lock_timeout: string }>('show lock_timeout'))
        .rows;
      assert.equal(connection, { lock_timeout: '0' });
      const locks = `select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`;
      assert.equal(await db.rows(locks), []);
    }),
);

retention(
  'a day with an event that is not routed, or a delivery that waits or is under way, is kept until it is done',
  () =>
    onFresh(async (db) => {
      const [waiting, running] = [
        newEvent({ occurredAtMs: at(1) }),
        newEvent({ occurredAtMs: at(2) }),
      ];
      await acceptEvents(db.pool, batch([pendingEvent({ occurredAtMs: at(0) })]));
      await acceptEvents(
        db.pool,
        batch([waiting], {
          deliveries: [newDelivery(waiting, { status: 'scheduled', dueInMs: Infinity })],
        }),
      );
      await acceptEvents(db.pool, batch([running], { deliveries: [newDelivery(running)] }));
      await routed(db, 3);
      const kept = await forget(db, 40);
      assert.equal(kept.unfinished, [dayOf(0), dayOf(1), dayOf(2)]);
      assert.equal(
        kept.dropped.map(({ day }) => day),
        [-1, 3, 4, 5, 6, 7].map(dayOf),
      );
      for (const day of [0, 1, 2]) assert.equal(await partitions(db, day), [...TABLES].sort());
      await db.rows(
        `update event_deliveries set status = 'retry', claimed_by = null, next_attempt_at = now() where status = 'processing'`,
      );
      assert.equal((await forget(db, 40)).unfinished, [dayOf(0), dayOf(1), dayOf(2)]);
      await db.rows(
        `update events set status = 'processed', outcome = 'routed' where status = 'pending'`,
      );
      await finish(db);
      assert.equal(
        (await forget(db, 40)).dropped.map(({ day }) => day),
        [0, 1, 2].map(dayOf),
      );
    }),
);

/** Creates events of a day without deliveries, without affecting deliveries of other days. */
async function routed(db: Db, day: number): Promise<void> {
  await acceptEvents(db.pool, batch(newEvents(2, (n) => ({ occurredAtMs: at(day) + n }))));
}

onPostgres(retention)(
  'whether a day is finished is read from indexes that hold nothing else, however many rows it has',
  () =>
    onFresh(async (db) => {
      await finished(db, 0, 2000);
      await db.rows('analyze');
      const plan = await db.pool.query<{ 'QUERY PLAN': string }>(
        `explain (costs off) ${unfinished(dayOf(0))}`,
      );
      const text = plan.rows.map((row) => row['QUERY PLAN']).join('\n');
      assert.is(text.match(/Index (Only )?Scan/g)?.length, 3, text);
      assert.not.match(text, 'Seq Scan');
    }),
);

retention(
  'finished rows of the default partition are deleted, in as many steps as it takes; what is not finished or young is kept',
  () =>
    onFresh(async (db) => {
      const old = newEvents(1500, (n) => ({ occurredAtMs: at(-200) + n }));
      const deliveries = old.slice(0, 1200).map((event) => newDelivery(event));
      await acceptEvents(db.pool, batch(old, { deliveries }));
      await finish(db);
      const open = newEvent({ occurredAtMs: at(-100) });
      await acceptEvents(db.pool, batch([open], { deliveries: [newDelivery(open)] }));
      await acceptEvents(db.pool, batch([pendingEvent({ occurredAtMs: at(-100) })]));
      const young = newEvent({ occurredAtMs: at(60) });
      const ahead = newEvent({ occurredAtMs: Date.UTC(2200, 0, 1) });
      await acceptEvents(db.pool, batch([young, ahead]));
      await db.rows(`update events set accepted_at = $1 where id = $2`, [
        new Date(at(50)),
        young.id,
      ]);
      assert.is(await count(db, 'events_default'), 1504);

      // They were accepted today: a source read from its beginning delivers old messages.
      assert.equal((await forget(db, 0)).rowsDeleted, 0);
      assert.is(
        (await forget(db, 50)).rowsDeleted,
        1500 + 1200 + 1,
        'the one of 2200 expires by when it came',
      );
      assert.equal(
        (await db.rows<{ id: string }>('select id from events_default order by id'))
          .map(({ id }) => id)
          .filter((id) => [open.id, young.id, ahead.id].includes(id)),
        [open.id, young.id],
      );
      assert.equal(await counts(db, '_default'), [3, 1, 0]);
    }),
);

retention(
  'messages in quarantine that were replayed or discarded are deleted when they are old, those that wait are kept',
  () =>
    onFresh(async (db) => {
      const messages = [0, 1, 2, 3].map((n) =>
        quarantinedMessage({ occurredAtMs: Date.now() + n }),
      );
      await quarantineMessages(db.pool, messages);
      const set = (n: number, status: string) =>
        db.rows('update quarantined_messages set status = $2 where id = $1', [
          messages[n]!.id,
          status,
        ]);
      await set(0, 'replayed');
      await set(1, 'discarded');
      assert.is((await forget(db, 20)).rowsDeleted, 0);
      assert.is((await forget(db, 40)).rowsDeleted, 2);
      assert.equal(
        (await db.rows<{ id: string }>('select id from quarantined_messages order by id')).map(
          ({ id }) => id,
        ),
        messages
          .slice(2)
          .map(({ id }) => id)
          .sort(),
      );
    }),
);

/** Creates events of a stored message, on a day. */
async function keptOn(db: Db, day: number, events: readonly StorableEvent[]): Promise<void> {
  const { projectId, occurredAtMs, id } = events[0]!;
  const parts = keptParts({ body: Buffer.from('hunter2'), headers: {} });
  const message = { projectId, id, occurredAtMs, digest: '00'.repeat(8), ...parts };
  await acceptEvents(
    db.pool,
    batch(sorted(events), { messages: [{ message, eventIds: events.map((event) => event.id) }] }),
  );
  assert.is(
    await count(
      db,
      `event_messages${day < -1 ? '_default' : `_${dayOf(day).replaceAll('-', '')}`}`,
    ),
    1,
  );
}

retention('kept messages are dropped with their day', () =>
  onFresh(async (db) => {
    await keptOn(db, 0, [newEvent({ occurredAtMs: at(0) })]);
    assert.equal((await forget(db, 31)).dropped.length, 2);
    assert.equal(await counts(db), [0, 0, 0]);
    assert.is(await count(db, 'event_messages'), 0);
    assert.is(
      (
        await db.rows(
          `select from pg_class where relname = 'event_messages_${dayOf(0).replaceAll('-', '')}'`,
        )
      ).length,
      0,
    );
  }),
);

retention('where rows are deleted, a kept message goes after the last of its events', () =>
  onFresh(async (db) => {
    const [first, second] = [0, 1].map((n) => {
      const fields = { occurredAtMs: at(-200), coordinates: 'orders/0/same' };
      return n === 0 ? newEvent(fields) : pendingEvent({ ...fields, id: newId(at(-200)) });
    });
    await keptOn(db, -200, [first!, second!]);
    assert.is((await forget(db, 0)).rowsDeleted, 0);
    assert.is((await forget(db, 50)).rowsDeleted, 1);
    assert.equal([await count(db, 'events'), await count(db, 'event_messages')], [1, 1]);
    await db.rows(`update events set status = 'processed', outcome = 'routed'`);
    assert.is((await forget(db, 50)).rowsDeleted, 2);
    assert.equal([await count(db, 'events'), await count(db, 'event_messages')], [0, 0]);
  }),
);

retention(
  'a project that keeps its events for a shorter time keeps their messages as short, also in a day that stays',
  () =>
    onFresh(async (db) => {
      const { id: projectId } = await makeProject(db, 'short', { retention: { days: 1 } });
      await keptOn(db, 0, [newEvent({ occurredAtMs: at(0), projectId })]);
      await finished(db, 0, 1);
      assert.is((await forget(db, 5)).rowsDeleted, 2);
      assert.equal([await count(db, 'events'), await count(db, 'event_messages')], [1, 0]);
    }),
);

retention(
  'while somebody reads a table for long, agents go on writing and the day is left for the next time',
  () =>
    onFresh(async (db) => {
      await finished(db, 0);
      const backup = await db.connect();
      try {
        await backup.query('begin');
        await backup.query('lock table event_deliveries in access share mode');
        const forgetting = forget(db, 31);
        let longest = 0;
        let done = false;
        void forgetting.then(() => (done = true));
        await until('the retention to give up', async () => {
          const startedAt = performance.now();
          await acceptEvents(db.pool, batch([newEvent({ occurredAtMs: at(2) })]));
          longest = Math.max(longest, performance.now() - startedAt);
          return done;
        });
        const { dropped, locked } = await forgetting;
        assert.equal([dropped, locked], [[], true]);
        assert.ok(longest < 5_000, `an agent waited ${longest} ms`);
        await backup.query('commit');
      } finally {
        await backup.end();
      }
      assert.equal(
        (await forget(db, 31)).dropped.map(({ day }) => day),
        [dayOf(-1), dayOf(0)],
      );
    }),
);

retention('of agents that look at the same time one does the work, and none fails', () =>
  onFresh(async (db) => {
    await finished(db, 0);
    const done = await Promise.all(Array.from({ length: 4 }, () => forget(db, 31)));
    assert.equal(done.flatMap(({ dropped }) => dropped.map(({ day }) => day)).sort(), [
      dayOf(-1),
      dayOf(0),
    ]);
  }),
);

retention(
  'a day that a broken drop left in two of the tables is dropped, and the coming days are made as before',
  () =>
    onFresh(async (db) => {
      await db.rows(`drop table delivery_attempts_${dayOf(0).replaceAll('-', '')}`);
      assert.equal(
        (await forget(db, 31)).dropped.map(({ day }) => day),
        [dayOf(-1), dayOf(0)],
      );
      assert.equal(await runMaintenance(db.planes), []);
      assert.equal(await partitions(db, 0), [...TABLES].sort());
    }),
);

/** Locks a delivery, like a change of it, until `work` ends or waits for the lock. */
async function whileRequeued(db: Db, id: string, work: () => Promise<unknown>): Promise<void> {
  const other = await db.connect();
  try {
    await other.query('begin');
    await other.query(
      `update event_deliveries set status = 'scheduled', next_attempt_at = now() where id = $1`,
      [id],
    );
    let done = false;
    const working = work().finally(() => (done = true));
    const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await until(
      'the work to end or to wait',
      async () => done || (await db.rows(waits)).length > 0,
    );
    await other.query('commit');
    await working;
  } finally {
    await other.end();
  }
}

retention(
  'a delivery of the default partition that is re-queued at the moment of its deletion is kept with its event',
  () =>
    onFresh(async (db) => {
      await forget(db, 50);
      await finished(db, -200, 2);
      const [first] = await db.rows<{ id: string }>('select id from event_deliveries order by id');
      await whileRequeued(db, first!.id, () => forget(db, 50));
      assert.equal(await db.rows('select id, status from event_deliveries'), [
        { id: first!.id, status: 'scheduled' },
      ]);
      assert.is(await count(db, 'events'), 1);
    }),
);

retention(
  'a delivery of an old day that is re-queued while the day is looked at keeps the day',
  () =>
    onFresh(async (db) => {
      await forget(db, 30);
      await finished(db, 0, 2);
      const [first] = await db.rows<{ id: string }>('select id from event_deliveries order by id');
      let kept: string[] = [];
      await whileRequeued(
        db,
        first!.id,
        async () => (kept = [...(await forget(db, 31)).unfinished]),
      );
      assert.equal(await counts(db), [2, 2, 2]);
      assert.equal(kept, [dayOf(0)]);
    }),
);

retention(
  'a day whose rows are partly in its partitions and partly in the default ones is kept while any is not finished',
  () =>
    onFresh(async (db) => {
      const event = newEvent({ occurredAtMs: at(20) });
      await db.rows('select ensure_day($1::date)', [dayOf(20)]);
      await db.rows(`drop table events_${dayOf(20).replaceAll('-', '')}`);
      await acceptEvents(db.pool, batch([event]));
      assert.equal(await partitions(db, 20), ['delivery_attempts', 'event_deliveries']);
      await db.rows(
        `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, next_attempt_at)
       select project_id, $1, occurred_at, id, gen_random_uuid(), 'scheduled', 'infinity' from events`,
        [newDelivery(event).id],
      );
      const kept = await forget(db, 60);
      assert.ok(kept.unfinished.includes(dayOf(20)));
      assert.equal(await counts(db), [1, 1, 0]);
      await finish(db);
      await forget(db, 60);
      await forget(db, 60);
      assert.equal(await counts(db), [0, 0, 0]);

      const pending = pendingEvent({ occurredAtMs: at(21) });
      await acceptEvents(db.pool, batch([pending]));
      await db.rows('select ensure_day($1::date)', [dayOf(21)]);
      assert.equal((await forget(db, 60)).unfinished, [dayOf(21)]);
    }),
);

retention('what is old is told by the clock of Postgres, not by that of the agent', () =>
  onFresh(async (db) => {
    await finished(db, 0);
    const { now } = Date;
    Date.now = () => now() + 90 * DAY_MS;
    const Right = globalThis.Date;
    globalThis.Date = class extends Right {
      constructor(...time: [] | [number | string]) {
        super(...((time.length === 0 ? [now() + 90 * DAY_MS] : time) as [number]));
      }
    } as DateConstructor;
    try {
      assert.equal(await applyRetention(db.planes, { days: DAYS }), NOTHING);
    } finally {
      globalThis.Date = Right;
      Date.now = now;
    }
  }),
);

retention('it ends at once when the agent ends, and leaves its connection to others', () =>
  onFresh(async (db) => {
    await finished(db, 0);
    await finished(db, -200);
    const now = new Date(at(50));
    assert.equal(
      await applyRetention(db.planes, { days: DAYS, now, signal: AbortSignal.abort() }),
      NOTHING,
    );
    assert.equal(await counts(db), [6, 6, 6]);
    assert.is((await forget(db, 50)).rowsDeleted, 6);
  }),
);

retention.run();
