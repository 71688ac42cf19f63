import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { acceptEvents } from '#store/events/events';
import { runMaintenance } from '#store/retention/maintenance';
import { within } from '../../support/until.js';
import { batch, newEvent, PROJECT } from '../batches.js';
import { migratedDatabase } from '../migrated.js';

const maintenance = suite('store/retention/maintenance');

/** Runs a test on a database of its own: partitions come and go. */
async function onFresh(test: (db: Awaited<ReturnType<typeof migratedDatabase>>) => Promise<void>): Promise<void> {
  const db = await migratedDatabase();
  try {
    await within(test(db), 60_000, 'the test');
  } finally {
    await db.close();
  }
}

const DAY_MS = 86_400_000;
const TABLES = ['events', 'event_deliveries', 'delivery_attempts'];

/** The name of the partition of a day, counted from today. */
function partition(table: string, day: number): string {
  return `${table}_${new Date(Date.now() + day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`;
}

type Rows = Awaited<ReturnType<typeof migratedDatabase>>['rows'];

async function exists(rows: Rows, name: string): Promise<boolean> {
  return (await rows<{ there: boolean }>('select to_regclass($1) is not null as there', [name]))[0]!.there;
}

async function dropDay(rows: Rows, day: number): Promise<void> {
  for (const table of TABLES) await rows(`drop table ${partition(table, day)}`);
}

maintenance('after a migration the coming week is there, and there is nothing to do', () =>
  onFresh(async (db) => {
    assert.equal(await runMaintenance(db.pool), { partitionsCreated: false, keysDeleted: 0 });
    for (const table of TABLES) for (const day of [0, 1, 7]) assert.ok(await exists(db.rows, partition(table, day)));
  }),
);

maintenance('days that are missing are made in all three tables', () =>
  onFresh(async (db) => {
    await dropDay(db.rows, 5);
    assert.equal(await runMaintenance(db.pool, 9), { partitionsCreated: true, keysDeleted: 0 });
    for (const table of TABLES) for (const day of [5, 8, 9]) assert.ok(await exists(db.rows, partition(table, day)));
    assert.not.ok(await exists(db.rows, partition('events', 10)));
    assert.equal(await runMaintenance(db.pool, 9), { partitionsCreated: false, keysDeleted: 0 });
  }),
);

maintenance('a day that the default partition holds rows of is left to it, and the other days are made', () =>
  onFresh(async (db) => {
    await dropDay(db.rows, 3);
    await dropDay(db.rows, 4);
    const event = newEvent({ occurredAtMs: Date.now() + 3 * DAY_MS });
    await acceptEvents(db.pool, batch([event]));
    assert.is((await runMaintenance(db.pool)).partitionsCreated, true);
    assert.not.ok(await exists(db.rows, partition('events', 3)));
    assert.ok(await exists(db.rows, partition('events', 4)));
    assert.equal(await acceptEvents(db.pool, batch([event])), new Set());
  }),
);

maintenance('keys whose window has passed are forgotten, the others are kept', () =>
  onFresh(async (db) => {
    await db.rows(
      `insert into idempotency_keys (project_id, key, event_id, expires_at)
       select $1, 'key ' || n, gen_random_uuid(), now() + case when n <= 2500 then -interval '1 s' else interval '1 h' end from generate_series(1, 2503) n`,
      [PROJECT],
    );
    assert.equal(await runMaintenance(db.pool), { partitionsCreated: false, keysDeleted: 2500 });
    assert.equal(await db.rows('select count(*)::int as n from idempotency_keys'), [{ n: 3 }]);
  }),
);

maintenance('of agents that look at the same time one does the work, and none fails', () =>
  onFresh(async (db) => {
    await dropDay(db.rows, 6);
    const done = await Promise.all(Array.from({ length: 4 }, () => runMaintenance(db.pool)));
    assert.is(done.filter(({ partitionsCreated }) => partitionsCreated).length, 1);
    assert.ok(await exists(db.rows, partition('events', 6)));
  }),
);

maintenance('while somebody reads a table for long, as a backup does, a missing day is left for the next time', () =>
  onFresh(async (db) => {
    await dropDay(db.rows, 7);
    const backup = await db.connect();
    try {
      await backup.query('begin');
      await backup.query('lock table events in access share mode');
      await db.rows(`insert into idempotency_keys values ($1, 'old', gen_random_uuid(), now() - interval '1 s')`, [PROJECT]);
      assert.equal(await runMaintenance(db.pool), { partitionsCreated: false, keysDeleted: 1 });
      await backup.query('commit');
    } finally {
      await backup.end();
    }
    assert.is((await runMaintenance(db.pool)).partitionsCreated, true);
  }),
);

maintenance('the connection it used is as it was: no lock and no setting stays', () =>
  onFresh(async (db) => {
    await runMaintenance(db.pool);
    assert.equal((await db.pool.query<{ lock_timeout: string }>('show lock_timeout')).rows, [{ lock_timeout: '0' }]);
    assert.equal(
      await db.rows(
        `select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
      ),
      [],
    );
  }),
);

maintenance.run();
