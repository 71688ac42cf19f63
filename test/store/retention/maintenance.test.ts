import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runMaintenance } from '#store/retention/maintenance';
import { within } from '../../support/until.js';
import { accepted, batch, newDelivery, newEvent, PROJECT } from '../batches.js';
import { migratedDatabase } from '../migrated.js';

const maintenance = suite('store/retention/maintenance');

/** Runs a test on a private database: it creates and drops partitions. */
async function onFresh(
  test: (db: Awaited<ReturnType<typeof migratedDatabase>>) => Promise<void>,
): Promise<void> {
  const db = await migratedDatabase();
  try {
    await within(test(db), 60_000, 'the test');
  } finally {
    await db.close();
  }
}

const DAY_MS = 86_400_000;
const TABLES = ['events', 'event_deliveries', 'delivery_attempts', 'event_messages'];
const dayOf = (day: number) => new Date(Date.now() + day * DAY_MS).toISOString().slice(0, 10);

/** The name of a day's partition, relative to today. */
function partition(table: string, day: number): string {
  return `${table}_${new Date(Date.now() + day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`;
}

type Rows = Awaited<ReturnType<typeof migratedDatabase>>['rows'];

async function exists(rows: Rows, name: string): Promise<boolean> {
  return (await rows<{ there: boolean }>('select to_regclass($1) is not null as there', [name]))[0]!
    .there;
}

async function dropDay(rows: Rows, day: number): Promise<void> {
  for (const table of TABLES) await rows(`drop table ${partition(table, day)}`);
}

maintenance('after a migration the coming week is there, and there is nothing to do', () =>
  onFresh(async (db) => {
    assert.equal(await runMaintenance(db.planes), []);
    for (const table of TABLES)
      for (const day of [0, 1, 7]) assert.ok(await exists(db.rows, partition(table, day)));
  }),
);

maintenance('days that are missing are made in all three tables', () =>
  onFresh(async (db) => {
    await dropDay(db.rows, 5);
    assert.equal(await runMaintenance(db.planes, 9), []);
    for (const table of TABLES)
      for (const day of [5, 8, 9]) assert.ok(await exists(db.rows, partition(table, day)));
    assert.not.ok(await exists(db.rows, partition('events', 10)));
    assert.equal(await runMaintenance(db.planes, 9), []);
  }),
);

maintenance(
  'a day that the default partition holds rows of is made, with those rows, and they stay what they were',
  () =>
    onFresh(async (db) => {
      for (const day of [0, 3, 4]) await dropDay(db.rows, day);
      const event = newEvent({ occurredAtMs: Date.now() + 3 * DAY_MS });
      const [delivery, today] = [newDelivery(event), newEvent({ occurredAtMs: Date.now() })];
      await accepted(db.pool, batch([event, today], { deliveries: [delivery] }));
      const far = newEvent({ occurredAtMs: Date.now() + 30 * DAY_MS });
      await accepted(db.pool, batch([far]));
      assert.equal(await runMaintenance(db.planes), []);
      for (const day of [0, 3, 4])
        for (const table of TABLES) assert.ok(await exists(db.rows, partition(table, day)));
      assert.equal(await db.rows(`select id from ${partition('events', 3)}`), [{ id: event.id }]);
      assert.equal(await db.rows(`select id from ${partition('event_deliveries', 3)}`), [
        { id: delivery.id },
      ]);
      assert.equal(await db.rows(`select id from ${partition('events', 0)}`), [{ id: today.id }]);
      assert.equal(await db.rows(`select id from events_default`), [{ id: far.id }]);
      assert.equal(await accepted(db.pool, batch([event])), new Set());
      // Identical to the partitions of other days.
      const shape = (day: number) =>
        db.rows(
          `select regexp_replace(pg_get_indexdef(indexrelid), '[0-9]{8}', '', 'g') as index from pg_index where indrelid = $1::regclass
         union all select pg_get_constraintdef(oid) from pg_constraint where conrelid = $1::regclass order by 1`,
          [partition('events', day)],
        );
      assert.equal(await shape(3), await shape(5));
    }),
);

maintenance(
  'a day of which the default partition holds too many rows is left to it and reported, and the other days are made',
  () =>
    onFresh(async (db) => {
      for (const day of [3, 4]) await dropDay(db.rows, day);
      await db.rows(
        `insert into event_messages (project_id, id, occurred_at, digest, headers, raw_bytes)
       select $1, gen_random_uuid(), now() + interval '3 days', '', '', 0 from generate_series(1, 100001)`,
        [PROJECT],
      );
      assert.equal(await runMaintenance(db.planes), [dayOf(3)]);
      assert.ok(await exists(db.rows, partition('events', 3)));
      assert.ok(await exists(db.rows, partition('events', 4)));
    }),
);

maintenance('keys whose window has passed are forgotten, the others are kept', () =>
  onFresh(async (db) => {
    await db.rows(
      `insert into idempotency_keys (project_id, key, event_id, expires_at)
       select $1, 'key ' || n, gen_random_uuid(), now() + case when n <= 2500 then -interval '1 s' else interval '1 h' end from generate_series(1, 2503) n`,
      [PROJECT],
    );
    assert.equal(await runMaintenance(db.planes), []);
    assert.equal(await db.rows('select count(*)::int as n from idempotency_keys'), [{ n: 3 }]);
  }),
);

maintenance('of agents that look at the same time one does the work, and none fails', () =>
  onFresh(async (db) => {
    await dropDay(db.rows, 6);
    const done = await Promise.all(Array.from({ length: 4 }, () => runMaintenance(db.planes)));
    assert.equal(done.flat(), []);
    assert.ok(await exists(db.rows, partition('events', 6)));
  }),
);

maintenance(
  'while somebody reads a table for long, as a backup does, a missing day is left for the next time',
  () =>
    onFresh(async (db) => {
      await dropDay(db.rows, 7);
      const backup = await db.connect();
      try {
        await backup.query('begin');
        await backup.query('lock table events in access share mode');
        await db.rows(
          `insert into idempotency_keys values ($1, 'old', gen_random_uuid(), now() - interval '1 s')`,
          [PROJECT],
        );
        assert.equal(await runMaintenance(db.planes), [dayOf(7)]);
        await backup.query('commit');
      } finally {
        await backup.end();
      }
      assert.equal(await runMaintenance(db.planes), []);
    }),
);

maintenance('the connection it used is as it was: no lock and no setting stays', () =>
  onFresh(async (db) => {
    await runMaintenance(db.planes);
    assert.equal((await db.pool.query<{ lock_timeout: string }>('show lock_timeout')).rows, [
      { lock_timeout: '0' },
    ]);
    assert.equal(
      await db.rows(
        `select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
      ),
      [],
    );
  }),
);

maintenance.run();
