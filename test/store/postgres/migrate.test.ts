import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { explainDatabaseError } from '#core/errors/database-errors';
import { isGatewayError } from '#core/errors/errors';
import { openDatabase, type Database } from '#store/postgres/database';
import {
  createMigration,
  droppedTables,
  migrateDown,
  migrateUp,
  migrationsDir,
  pendingMigrations,
  requireMigrated,
} from '#store/postgres/migrate';
import { connectionOf, database } from '../../support/database.js';
import { until, within } from '../../support/until.js';
import { openUrl } from '../migrated.js';
import { describeSchema, type Rows } from '../schema.js';

const migrate = suite('store/postgres/migrate');

const snapshot = fileURLToPath(new URL('../schema.txt', import.meta.url));
const folders: string[] = [];
migrate.after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function folder(files: Readonly<Record<string, string>>): string {
  const dir = mkdtempSync(join(tmpdir(), 'gateway-migrations-'));
  folders.push(dir);
  for (const [name, sql] of Object.entries(files)) writeFileSync(join(dir, name), sql);
  return dir;
}

async function onEmpty(
  test: (db: Database, rows: Rows, url: string) => Promise<void>,
): Promise<void> {
  const own = await database();
  const opened = openUrl(own.url);
  try {
    await within(test(opened, own.rows, own.url), 60_000, 'the test');
  } finally {
    await opened.close();
    await own.close();
  }
}

async function codeOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    assert.ok(isGatewayError(error), String(error));
    return error.code;
  }
}

migrate('up applies every migration in order, and a second up finds nothing', () =>
  onEmpty(async (db) => {
    const { pending } = await pendingMigrations(db);
    assert.ok(pending.includes('0001_control_plane'));
    assert.equal(pending, [...pending].sort());
    assert.equal(await migrateUp(db), pending);
    assert.equal(await pendingMigrations(db), { pending: [], unknown: [] });
    assert.equal(await migrateUp(db), []);
  }),
);

migrate('the schema is the one on record', () =>
  onEmpty(async (db, rows) => {
    await migrateUp(db);
    const schema = await describeSchema(rows);
    if (process.env['UPDATE_SNAPSHOTS']) writeFileSync(snapshot, schema);
    assert.fixture(
      schema,
      readFileSync(snapshot, 'utf8'),
      'test/store/schema.txt is not what the migrations make; UPDATE_SNAPSHOTS=1 writes it',
    );
  }),
);

migrate(
  'down undoes one migration, down to the empty database, and up makes the same schema again',
  () =>
    onEmpty(async (db, rows) => {
      const before = await describeSchema(rows);
      const names = await migrateUp(db);
      const after = await describeSchema(rows);
      assert.equal(await migrateDown(db), [names.at(-1)]);
      assert.equal(await migrateDown(db, { max: 1000 }), names.slice(0, -1).reverse());
      assert.is(await describeSchema(rows), before);
      assert.equal(await migrateDown(db), []);
      assert.equal(await migrateUp(db), names);
      assert.is(await describeSchema(rows), after);
    }),
);

migrate(
  'down refuses to drop what cannot be made again, before it undoes anything, and does it when it is told to',
  () =>
    onEmpty(async (db, rows) => {
      const names = await migrateUp(db);
      await rows(`insert into organisations (id, name) values (gen_random_uuid(), 'Acme')`);
      const schema = await describeSchema(rows);
      await migrateDown(db, { max: 1000 }).then(
        () => assert.unreachable(),
        (error: Error) => {
          assert.ok(isGatewayError(error, 'migration_drops'), String(error));
          assert.is(
            error.message,
            'rolling back 0001_control_plane would drop a table that holds data: organisations; nothing was rolled back',
          );
          assert.match(
            error.fix,
            new RegExp(`^\`--max ${names.length - 1}\` stops before that; .*\`--drop-data\``),
          );
        },
      );
      assert.is(await describeSchema(rows), schema);
      assert.equal(await migrateDown(db, { max: 1000, dropData: true }), [...names].reverse());
    }),
);

migrate(
  'down refuses for accounts, the audit log and every other table that nothing recreates',
  () =>
    onEmpty(async (db, rows) => {
      const names = await migrateUp(db);
      const replaceable = [
        ...[
          'agents',
          'config_version',
          'project_versions',
          'metric_samples',
          'count_changes',
          'archive_failure',
        ],
        ...['event_counts', 'event_delivery_counts', 'delivery_attempt_counts'],
        // Its migration refuses to drop others than the default one.
        'shards',
      ];
      const guarded = names.flatMap((name) =>
        droppedTables(readFileSync(join(migrationsDir(), `${name}.down.sql`), 'utf8')),
      );
      const tables = await rows<{ name: string }>(
        `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
       and not relispartition and relname !~ '^gateway_migrations'`,
      );
      assert.equal(
        guarded.sort(),
        tables
          .map(({ name }) => name)
          .filter((name) => !replaceable.includes(name))
          .sort(),
      );
      await rows(`
      insert into organisations (id, name) values ('00000000-0000-0000-0000-000000000001', 'Acme');
      insert into users (id, email, first_name, last_name, password_hash) values ('00000000-0000-0000-0000-000000000002', 'a@example.com', '', '', '');
      insert into organisation_members (organisation_id, user_id, role) select o.id, u.id, 'owner' from organisations o, users u;
      insert into user_identities (issuer, subject, user_id) select 'https://example.com', 'a', id from users;
      insert into invitations (organisation_id, id, email, role, mask, hash, expires_at) select id, id, 'b@example.com', 'member', 'm', 'h', now() from organisations;
      insert into audit_log (organisation_id, id, actor_type, actor_id, action, changes, request_id) select id, id, 'user', 'a', 'b', '{}', id from organisations;
    `);
      const error: unknown = await migrateDown(db, { max: 1000 }).catch((it: unknown) => it);
      assert.ok(isGatewayError(error, 'migration_drops'), String(error));
      for (const table of ['organisation_members', 'user_identities', 'invitations', 'audit_log'])
        assert.match(error.message, table);
    }),
);

migrate('ten processes may migrate at once: one applies each migration, all succeed', () =>
  onEmpty(async (db, _rows, url) => {
    const others = Array.from({ length: 9 }, () => openUrl(url, 1));
    try {
      const applied = await Promise.all([db, ...others].map((it) => migrateUp(it)));
      const { pending } = await pendingMigrations(db);
      assert.equal(pending, []);
      assert.is(applied.filter((names) => names.length > 0).length, 1);
    } finally {
      await Promise.all(others.map((it) => it.close()));
    }
  }),
);

migrate('a process that was killed while it migrated leaves no lock behind', () =>
  onEmpty(async (db, rows) => {
    await migrateUp(db);
    await migrateDown(db);
    await rows('update gateway_migrations_lock set is_locked = 1');
    assert.is((await migrateUp(db)).length, 1);
  }),
);

migrate('a failing migration names what Postgres says, and nothing of that up stays', () =>
  onEmpty(async (db, rows) => {
    const dir = folder({
      '0001_good.up.sql': 'create table good (id int);\n',
      '0001_good.down.sql': 'drop table good;\n',
      '0002_bad.up.sql': '-- Half of it is good.\ncreate table half (id int);\nselect nonsense;\n',
      '0002_bad.down.sql': 'drop table half;\n',
    });
    await migrateUp(db, { dir }).then(
      () => assert.unreachable(),
      (error: Error) => {
        assert.ok(isGatewayError(error, 'migration_failed'), String(error));
        assert.is(
          error.message,
          'the migration 0002_bad.up.sql failed: column "nonsense" does not exist (line 3); this run was rolled back',
        );
      },
    );
    assert.equal(
      await rows(`select to_regclass('half')::text as half, to_regclass('good')::text as good`),
      [{ half: null, good: null }],
    );
    assert.equal(await pendingMigrations(db, dir), {
      pending: ['0001_good', '0002_bad'],
      unknown: [],
    });
  }),
);

migrate('a file that begins with "-- no transaction" may create an index concurrently', () =>
  onEmpty(async (db, rows) => {
    const dir = folder({
      '0001_table.up.sql': 'create table it (id int);\n',
      '0001_table.down.sql': 'drop table it;\n',
      '0002_index.up.sql':
        '-- no transaction\n-- Two statements.\ncreate index concurrently it_id on it (id);\ncreate index concurrently it_id2 on it (id);\n',
      '0002_index.down.sql':
        '-- no transaction\ndrop index concurrently it_id;\ndrop index concurrently it_id2;\n',
    });
    await migrateUp(db, { dir });
    assert.is((await rows(`select from pg_indexes where tablename = 'it'`)).length, 2);
    await migrateDown(db, { dir });
    assert.is((await rows(`select from pg_indexes where tablename = 'it'`)).length, 0);
  }),
);

migrate(
  'a statement that fails outside of a transaction is named with its line, and what came before it stays',
  () =>
    onEmpty(async (db, rows) => {
      const dir = folder({
        '0001_table.up.sql':
          '-- no transaction\ncreate table it (id int);\n\n-- No such column.\ncreate index concurrently it_x on it (nonsense);\n',
        '0001_table.down.sql': 'drop table it;\n',
      });
      const error: unknown = await migrateUp(db, { dir }).catch((it: unknown) => it);
      assert.ok(isGatewayError(error, 'migration_failed'), String(error));
      assert.match(
        error.message,
        /^the migration 0001_table\.up\.sql failed: column "nonsense" does not exist.*; its earlier statements remain in effect$/,
      );
      assert.equal(await rows(`select to_regclass('it')::text as it`), [{ it: 'it' }]);
      assert.equal(await pendingMigrations(db, dir), { pending: ['0001_table'], unknown: [] });
    }),
);

migrate('a file that is "-- no transaction" alone, without a line break, counts as one', () =>
  onEmpty(async (db, rows) => {
    const dir = folder({
      '0001_table.up.sql': 'create table it (id int);\n',
      '0001_table.down.sql': 'drop table it;\n',
      '0002_index.up.sql': 'create index concurrently it_id on it (id);\n',
      '0002_index.down.sql': '-- no transaction',
    });
    await migrateUp(db, { dir });
    assert.is((await rows(`select from pg_indexes where tablename = 'it'`)).length, 1);
  }),
);

migrate(
  'a database that lacks migrations is refused with their names, and nothing is written to it',
  () =>
    onEmpty(async (db, rows) => {
      assert.is(await codeOf(requireMigrated(db)), 'migration_pending');
      assert.equal(await rows(`select tablename from pg_tables where schemaname = 'public'`), []);
      await migrateUp(db);
      await requireMigrated(db);
    }),
);

migrate(
  'a newer database is refused by up and down, and by all if a migration of it contracts',
  () =>
    onEmpty(async (db, rows) => {
      await migrateUp(db);
      await rows(
        `insert into gateway_migrations (name, batch, migration_time) values ('9999_from_the_future', 9, now())`,
      );
      assert.equal(await requireMigrated(db), ['9999_from_the_future'], 'it only adds');
      assert.is(await codeOf(migrateUp(db)), 'database_newer');
      assert.is(await codeOf(migrateDown(db)), 'database_newer');
      await rows(`update gateway_migrations set name = '9999_contract_it' where name ~ '^9999'`);
      assert.is(await codeOf(requireMigrated(db)), 'database_newer');
    }),
);

migrate('who waits for another that migrates is told once', () =>
  onEmpty(async (db, rows) => {
    await rows(`select pg_advisory_lock(hashtext('gateway.migrate'))`);
    let told = 0;
    const waiting = migrateUp(db, { onWait: () => told++ });
    await until('the word that it waits', () => told > 0);
    await rows(`select pg_advisory_unlock(hashtext('gateway.migrate'))`);
    assert.ok((await waiting).length > 0);
    await migrateUp(db, { onWait: () => told++ });
    assert.is(told, 1);
  }),
);

const LOCKING = {
  '0001_one.up.sql': 'alter table busy add column a text;',
  '0001_one.down.sql': '',
};

migrate(
  'a migration does not keep others waiting for a lock that it cannot have; it is told of, and tried again',
  () =>
    onEmpty(async (db, rows) => {
      await rows('create table busy (id int)');
      const holder = await db.connect();
      try {
        await holder.query('begin; select from busy');
        const told: string[] = [];
        const migrating = migrateUp(db, { dir: folder(LOCKING), onWait: (why) => told.push(why) });
        await until('the word that it waits', () => told.length > 0);
        assert.match(told[0]!, /^other sessions hold locks that 0001_one\.up\.sql needs; /);
        // During its pause between two attempts, no session queues behind it.
        await rows(`set lock_timeout = 900; insert into busy values (1)`);
        await holder.query('commit');
        assert.equal(await migrating, ['0001_one']);
        assert.is(told.length, 1);
      } finally {
        await holder.end();
      }
    }),
);

migrate('a lock that is never given up ends the migration with the name of who holds it', () =>
  onEmpty(async (db, rows) => {
    await rows('create table busy (id int)');
    const holder = await db.connect();
    try {
      await holder.query(`set application_name = 'nightly-backup'`);
      await holder.query('begin; select from busy');
      const error: unknown = await migrateUp(db, { dir: folder(LOCKING), triesMs: 1_500 }).catch(
        (it: unknown) => it,
      );
      assert.ok(isGatewayError(error, 'migration_locked'), String(error));
      assert.match(
        error.message,
        /0001_one\.up\.sql could not lock its tables within \d+ s .* pid \d+ \(nightly-backup, idle in transaction for \d+ s\)/,
      );
      await holder.query('rollback');
      assert.equal(await migrateUp(db, { dir: folder(LOCKING) }), ['0001_one']);
    } finally {
      await holder.end();
    }
  }),
);

migrate('a migration that Postgres ends for a deadlock with an agent is tried again', () =>
  onEmpty(async (db, rows) => {
    await rows('create table first (id int); create table second (id int)');
    const agent = await db.connect();
    try {
      // The session whose deadlock_timeout has passed is ended.
      await agent.query(`set deadlock_timeout = '30s'; begin; select from second`);
      const dir = folder({
        '0001_two.up.sql': `set local deadlock_timeout = 20; alter table first add column a text; select pg_sleep(1); alter table second add column a text;`,
        '0001_two.down.sql': '',
      });
      const told: string[] = [];
      const migrating = migrateUp(db, { dir, onWait: (why) => told.push(why) });
      await until(
        'the migration to have the first table',
        async () =>
          (
            await rows(
              `select from pg_locks where mode = 'AccessExclusiveLock' and relation = 'first'::regclass`,
            )
          ).length > 0,
      );
      await agent.query('select from first; commit');
      assert.equal(await migrating, ['0001_two']);
      assert.is(told.length, 1);
    } finally {
      await agent.end();
    }
  }),
);

migrate('time limits of a role or database end no migration, also behind a pooler', () =>
  onEmpty(async (_, rows, url) => {
    const settings = { scheme: 'postgres' as const, ...connectionOf(url) };
    for (const limit of ['transaction', 'idle_in_transaction_session', 'statement'])
      await rows(`alter database ${settings.database} set ${limit}_timeout = '1s'`);
    const dir = folder({ '0001_long.up.sql': 'select pg_sleep(2);', '0001_long.down.sql': '' });
    for (const pooled of [false, true]) {
      const limited = openDatabase({ ...settings, pooled }, { poolSize: 2, name: 'test' });
      try {
        assert.equal(await migrateUp(limited, { dir }), ['0001_long']);
        await migrateDown(limited, { dir });
        if (!pooled) continue;
        const client = await limited.pool.connect();
        await client.query('begin; set local statement_timeout = 0');
        const error = await client.query('select pg_sleep(3)').then(
          () => assert.unreachable(),
          (it: unknown) => explainDatabaseError(it, settings),
        );
        client.release(true);
        assert.ok(isGatewayError(error, 'database_timeout'), String(error));
        assert.match(error.message, 'transaction_timeout has passed');
      } finally {
        await limited.close();
      }
    }
  }),
);

const WITHOUT_IDENTITY = `
  select c.relname from pg_class c
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relpersistence = 'p' and c.relreplident <> 'f'
    and not exists (select from pg_index i where i.indrelid = c.oid and (i.indisreplident or i.indisprimary and c.relreplident = 'd'))`;

migrate(
  'every logged table has a replica identity, so that a publication of all tables stops no work',
  async () => {
    for (const shard of [undefined, 'second'])
      await onEmpty(async (db, rows) => {
        await migrateUp(db, { shard });
        assert.equal(await rows(WITHOUT_IDENTITY), []);
        await rows('create publication everything for all tables');
        await rows(
          `insert into count_changes values (gen_random_uuid(), '{}', '{}', '{}', '{}', '{}', '{}')`,
        );
        await rows('delete from count_changes');
      });
  },
);

migrate('tables are analysed after up, so that the first plans know them', () =>
  onEmpty(async (db, rows) => {
    await migrateUp(db);
    const [row] = await rows<{ reltuples: number }>(
      `select reltuples from pg_class where relname = 'config_version'`,
    );
    assert.is(row?.reltuples, 1);
  }),
);

migrate(
  'create writes a pair of files with the next number and refuses names that no file should have',
  async () => {
    const dir = folder({ '0007_older.up.sql': '', '0007_older.down.sql': '' });
    assert.equal(
      createMigration(dir, 'add_portal_links').map((path) => basename(path)),
      ['0008_add_portal_links.up.sql', '0008_add_portal_links.down.sql'],
    );
    for (const name of ['', 'With Space', '../up', 'x-y'])
      assert.is(
        await codeOf(Promise.resolve().then(() => createMigration(dir, name))),
        'wrong_use',
        name,
      );
  },
);

migrate('the folder of the migrations is found from the built package', () => {
  assert.is(migrationsDir(), fileURLToPath(new URL('../../../migrations', import.meta.url)));
});

migrate.run();
