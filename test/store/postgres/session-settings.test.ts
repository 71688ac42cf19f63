import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError, type GatewayError } from '#core/errors/errors';
import { openDatabase, type Database } from '#store/postgres/database';
import { requireSessions } from '#store/postgres/pooler';
import { connectionOf, database, type Database as Own } from '../../support/database.js';
import { own } from '../../support/services.js';

const settings = suite('store/postgres/session-settings');

let db: Own;
settings.before(async () => void (db = await database()));
settings.after(() => db.close());

/**
 * Values that change the meaning or the plan of statements, as possible defaults of a role, a
 * database or the server.
 */
const HOSTILE: Readonly<Record<string, string>> = {
  datestyle: 'German, DMY',
  intervalstyle: 'sql_standard',
  timezone: 'Asia/Kathmandu',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  standard_conforming_strings: 'off',
  transform_null_equals: 'on',
  array_nulls: 'off',
  synchronous_commit: 'off',
  default_transaction_isolation: 'serializable',
  statement_timeout: '1234',
  lock_timeout: '1',
  idle_session_timeout: '1234',
  idle_in_transaction_session_timeout: '1234',
  transaction_timeout: '1234',
  enable_indexscan: 'off',
  enable_indexonlyscan: 'off',
  enable_bitmapscan: 'off',
  enable_nestloop: 'off',
  enable_sort: 'off',
  enable_hashagg: 'off',
  enable_tidscan: 'off',
  enable_partition_pruning: 'off',
  plan_cache_mode: 'force_generic_plan',
  from_collapse_limit: '1',
  join_collapse_limit: '1',
  work_mem: '5MB',
};

type Values = Readonly<Record<string, string>>;
const READ = `select json_object_agg(lower(name), current_setting(name)) as values from pg_settings where lower(name) = any ($1)`;

async function on<T>(
  place: Own,
  more: object,
  use: (opened: Database, given: Parameters<typeof openDatabase>[0]) => Promise<T>,
): Promise<T> {
  const given = { scheme: 'postgres' as const, ...connectionOf(place.url), ...more };
  const opened = openDatabase(given, { poolSize: 2, name: 'test', answerMs: 7_000 });
  try {
    return await use(opened, given);
  } finally {
    await opened.close();
  }
}

/** The values in a session of each kind: of hot statements, of the builder, and of the listener. */
const valuesOf = (place: Own, more: object = {}) =>
  on(place, more, async ({ pool, knex, connect }) => {
    const names = Object.keys(HOSTILE);
    const client = await connect();
    try {
      const hot = (await pool.query<{ values: Values }>(READ, [names])).rows[0]!.values;
      const built = (
        await knex.raw<{ rows: { values: Values }[] }>(READ.replace('$1', '?'), [names])
      ).rows[0]!.values;
      return {
        hot,
        built,
        listening: (await client.query<{ values: Values }>(READ, [names])).rows[0]!.values,
      };
    } finally {
      await client.end();
    }
  });

async function refusal(place: Own, more: object = {}): Promise<GatewayError> {
  const error = await on(place, more, (opened, given) =>
    requireSessions(opened, given).then(
      () => undefined,
      (it: unknown) => it,
    ),
  );
  assert.ok(isGatewayError(error), String(error));
  return error;
}

settings(
  'no session has a value of the database that would change what a statement means or how it is planned',
  async () => {
    const clean = await valuesOf(db);
    const hostile = await database();
    try {
      const [{ name }] = (await hostile.rows<{ name: string }>(
        'select current_database() as name',
      )) as [{ name: string }];
      for (const [setting, value] of Object.entries(HOSTILE))
        await hostile.rows(
          `alter database ${name} set ${setting} = ${setting === 'datestyle' ? value : `'${value}'`}`,
        );
      const found = await valuesOf(hostile);
      for (const kind of ['hot', 'built', 'listening'] as const)
        assert.equal(found[kind], { ...clean[kind], work_mem: '5MB' }, kind);
      assert.is(found.hot.statement_timeout, '7s');
      await on(hostile, {}, (opened, given) => requireSessions(opened, given));
    } finally {
      await hostile.close();
    }
  },
);

settings('the environment of the process changes no session', async () => {
  const clean = await valuesOf(db);
  const before = { ...process.env };
  Object.assign(process.env, {
    PGOPTIONS: '-c datestyle=German -c work_mem=5MB',
    PGREPLICATION: 'database',
    PGTZ: 'Asia/Kathmandu',
    PGDATESTYLE: 'German',
  });
  try {
    assert.equal(await valuesOf(db), clean);
  } finally {
    process.env = before;
  }
});

settings('database.options wins for what may differ, and is refused for what may not', async () => {
  const { hot, built } = await valuesOf(db, {
    options: 'options=-c statement_timeout=5s -c synchronous_commit=remote_apply',
  });
  for (const values of [hot, built])
    assert.equal(
      [values['statement_timeout'], values['synchronous_commit']],
      ['5s', 'remote_apply'],
    );
  const { code, message, fix } = await refusal(db, { options: 'options=-c array_nulls=off' });
  assert.is(code, 'database_setting');
  assert.match(
    message,
    /runs sessions of the gateway with array_nulls = off, set by database\.options; the gateway needs "on"/,
  );
  assert.match(fix, 'remove array_nulls from database.options');
});

settings(
  'a time that cannot be read is an error, from every kind of session, and infinity is none',
  () =>
    on(db, {}, async ({ pool, knex, connect }) => {
      const client = await connect();
      try {
        for (const query of [
          (sql: string) => client.query(sql),
          (sql: string) => pool.query(sql),
          (sql: string) => knex.raw(sql),
        ]) {
          for (const style of ['German', 'SQL, DMY', 'Postgres'])
            for (const type of ['timestamptz', 'timestamp', 'date']) {
              const error = await query(`do $$ begin execute 'set datestyle to ${style}'; end $$`)
                .then(() =>
                  query(
                    `select set_config('datestyle', '${style}', false), '2020-01-31'::${type} as at`,
                  ),
                )
                .then(
                  () => undefined,
                  (it: unknown) => it,
                );
              assert.ok(
                isGatewayError(error, 'database_time'),
                `${style} ${type}: ${String(error)}`,
              );
            }
          const { rows } = (await query(
            `set datestyle to ISO; select 'infinity'::timestamptz as at`,
          ).then((it: unknown) => (it as { rows: unknown[] }[])[1])) as {
            rows: { at: unknown }[];
          };
          assert.equal(rows, [{ at: Infinity }]);
        }
      } finally {
        await client.end();
      }
    }),
);

settings(
  'through a pooler what it keeps is set, and what it does not keep is refused with its origin and the way out',
  async () => {
    const hostile = await database();
    const bouncer = await own.pgbouncer(hostile.url);
    const session = await own.pgbouncer(hostile.url, {
      pool_mode: 'session',
      ignore_startup_parameters: 'options',
    });
    const { host, port, database: name } = connectionOf(hostile.url);
    const through = { host: '127.0.0.1', port: bouncer.port, direct: { host, port } };
    const at = (place: object) =>
      on(hostile, place, (opened, given) => requireSessions(opened, given));
    try {
      await hostile.rows(`alter database ${name} set datestyle = German, DMY`);
      await hostile.rows(`alter database ${name} set timezone = 'Asia/Kathmandu'`);
      for (const place of [through, { port: session.port }]) await at(place);
      const { built, hot } = await valuesOf(hostile, through);
      for (const values of [built, hot])
        assert.equal([values['datestyle'], values['timezone']], ['ISO, MDY', 'UTC']);

      const setting = async (sql: string, place: object, sentence: RegExp, remedy: RegExp) => {
        await hostile.rows(sql);
        // A pooler would keep its existing sessions. Waits for their end: one that is ending is
        // still given out.
        await hostile.rows(
          'select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
        );
        const { code, message, fix } = await refusal(hostile, place);
        assert.is(code, 'database_setting');
        assert.match(message, sentence);
        assert.match(fix, remedy);
      };
      await setting(
        `alter database ${name} set synchronous_commit = off`,
        through,
        new RegExp(
          `127\\.0\\.0\\.1:${bouncer.port} runs sessions of the gateway with synchronous_commit = off, set by database ${name}; the gateway needs "on"`,
        ),
        new RegExp(`run \`alter database ${name} reset synchronous_commit\``),
      );
      await hostile.rows(`alter database ${name} reset synchronous_commit`);
      await setting(
        `alter role postgres in database ${name} set transform_null_equals = on`,
        { port: session.port },
        new RegExp(`transform_null_equals = on, set by role postgres in database ${name}`),
        new RegExp(`\`alter role postgres in database ${name} reset transform_null_equals\``),
      );
    } finally {
      await bouncer.close();
      await session.close();
      await hostile.close();
    }
  },
);

settings(
  'a setting that only a superuser sets, and an encoding that cannot store all text, are refused',
  async () => {
    const [{ name }] = (await db.rows<{ name: string }>('select current_database() as name')) as [
      { name: string },
    ];
    await db.rows(`alter role postgres in database ${name} set session_replication_role = replica`);
    const replica = await refusal(db).finally(() =>
      db.rows(`alter role postgres in database ${name} reset session_replication_role`),
    );
    assert.match(
      replica.message,
      `session_replication_role = replica, set by role postgres in database ${name}`,
    );
    const windows = `${name}_windows`;
    await db.rows(
      `create database ${windows} encoding 'WIN1252' template template0 lc_collate 'C' lc_ctype 'C'`,
    );
    try {
      const { code, message, fix } = await refusal(db, { database: windows });
      assert.is(code, 'database_encoding');
      assert.match(message, `the database ${windows} on Postgres at`);
      assert.match(message, 'has the encoding WIN1252');
      assert.match(fix, 'createdb --encoding UTF8 --template template0');
    } finally {
      await db.rows(`drop database ${windows} with (force)`);
    }
  },
);

settings.run();
