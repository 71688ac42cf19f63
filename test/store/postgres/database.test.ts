import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { explainDatabaseError } from '#core/errors/database-errors';
import { isGatewayError } from '#core/errors/errors';
import { openDatabase, type Database, type DatabaseSettings } from '#store/postgres/database';
import { authority, type Authority, type Issued } from '../../support/authority.js';
import { proxy } from '../../support/proxy.js';
import { own } from '../../support/services.js';
import { until, within } from '../../support/until.js';

const database = suite('store/postgres/database');

let server: Awaited<ReturnType<typeof own.postgres>>;
let trusted: Authority;
let stranger: Authority;
const issued: Record<'right' | 'otherName' | 'expired' | 'client' | 'strange', Issued> =
  {} as never;

database.before(async () => {
  server = await own.postgres();
  [trusted, stranger] = [authority(), authority()];
  issued.right = trusted.issue('right', ['DNS:localhost', 'IP:127.0.0.1']);
  issued.otherName = trusted.issue('other-name', ['DNS:db.example.com']);
  issued.expired = trusted.issue('expired', ['DNS:localhost', 'IP:127.0.0.1'], { expired: true });
  issued.client = trusted.issue('client', []);
  issued.strange = stranger.issue('strange', []);
  await serve(issued.right, rule('host'), '');
});

database.after(async () => {
  await server.close();
  trusted.close();
  stranger.close();
});

const settings = (options: string, more: Partial<DatabaseSettings> = {}): DatabaseSettings => ({
  scheme: 'postgres',
  host: '127.0.0.1',
  port: server.port,
  username: 'postgres',
  database: 'postgres',
  options,
  ...more,
});

async function on<T>(
  options: string,
  use: (db: Database) => Promise<T>,
  more: Partial<DatabaseSettings> = {},
): Promise<T> {
  const db = openDatabase(settings(options, more), { poolSize: 3, name: 'gateway-test' });
  try {
    return await within(use(db), 20_000, 'the database');
  } finally {
    await db.close();
  }
}

const rule = (kind: string, more = '') => `${kind} all all 127.0.0.1/32 trust ${more}\n`;

/** Makes Postgres use this certificate, or no TLS, with these client rules. */
async function serve(
  certificate: Issued | undefined,
  rules = rule('host'),
  options = 'sslmode=prefer',
): Promise<void> {
  await on(options, async ({ knex }) => {
    const [{ data_directory: folder, hba_file: hba }] = (
      await knex.raw<{ rows: [{ data_directory: string; hba_file: string }] }>(
        `select current_setting('data_directory') as data_directory, current_setting('hba_file') as hba_file`,
      )
    ).rows;
    fs.writeFileSync(hba, rules);
    const { uid, gid } = fs.statSync(folder);
    if (certificate) {
      for (const [name, from] of [
        ['server.crt', certificate.certificate],
        ['server.key', certificate.key],
        ['root.crt', trusted.file],
      ] as const) {
        const to = `${folder}/${name}`;
        fs.copyFileSync(from, to);
        fs.chownSync(to, uid, gid);
        fs.chmodSync(to, 0o600);
      }
    }
    await knex.raw(`alter system set ssl_ca_file = 'root.crt'`);
    await knex.raw(`alter system set ssl = ${certificate ? 'on' : 'off'}`);
    // The postmaster loads the files on request, and records the time.
    const loadedAt = async () =>
      (
        await knex.raw<{ rows: [{ at: Date }] }>('select pg_conf_load_time() as at')
      ).rows[0].at.getTime();
    const before = await loadedAt();
    await knex.raw('select pg_reload_conf()');
    await until('Postgres to read its configuration', async () => (await loadedAt()) > before);
  });
}

const ENCRYPTED = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()';

/**
 * Tests whether each kind of connection is encrypted: prepared statements, builder and listener.
 */
function encrypted(options: string, more?: Partial<DatabaseSettings>): Promise<boolean[]> {
  return on(
    options,
    async ({ pool, knex, connect }) => {
      const client = await connect();
      try {
        const rows = [
          await pool.query<{ ssl: boolean }>(ENCRYPTED),
          await knex.raw<{ rows: { ssl: boolean }[] }>(ENCRYPTED),
          await client.query<{ ssl: boolean }>(ENCRYPTED),
        ];
        return rows.map((result) => result.rows[0]!.ssl);
      } finally {
        await client.end();
      }
    },
    more,
  );
}

/** The error for an unreachable database: from the pool, and the same from the builder. */
async function sentence(
  options: string,
  more?: Partial<DatabaseSettings>,
): Promise<{ message: string; fix: string }> {
  const told: { message: string; fix: string }[] = [];
  await on(
    options,
    async ({ pool, knex }) => {
      for (const ask of [() => pool.query('select 1'), () => knex.raw('select 1')]) {
        const error = await ask().then(
          () => assert.unreachable(`${options} worked`),
          (it: unknown) => explainDatabaseError(it, settings(options, more)),
        );
        assert.ok(isGatewayError(error), String(error));
        told.push({
          message: error.message.replace(String(server.port), '<port>'),
          fix: error.fix,
        });
      }
    },
    more,
  );
  assert.equal(told[0], told[1]);
  return told[0]!;
}

const PLAIN = [false, false, false];
const TLS = [true, true, true];

database('each sslmode applies to every connection', async () => {
  assert.equal(await encrypted(''), PLAIN);
  assert.equal(await encrypted('sslmode=disable'), PLAIN);
  assert.equal(await encrypted('sslmode=allow'), PLAIN);
  assert.equal(await encrypted('sslmode=prefer'), TLS);
  assert.equal(await encrypted('sslmode=require'), TLS);
  assert.equal(await encrypted('ssl=true'), TLS);
  assert.equal(await encrypted(`sslmode=require&sslrootcert=${trusted.file}`), TLS);
  assert.equal(await encrypted(`sslmode=verify-ca&sslrootcert=${trusted.file}`), TLS);
  assert.equal(await encrypted(`sslmode=verify-full&sslrootcert=${trusted.file}`), TLS);
  assert.equal(
    await encrypted(`?sslmode=verify-full&sslrootcert=${trusted.file}`, { host: 'localhost' }),
    TLS,
  );
  assert.equal(await encrypted('sslmode=require&sslnegotiation=direct'), TLS);
});

database(
  'the certificate of an authority that is not the one that was named is refused, in every mode',
  async () => {
    const expected =
      'TLS with Postgres at 127.0.0.1:<port> failed: its certificate is signed by an unknown authority';
    for (const mode of ['require', 'verify-ca', 'verify-full']) {
      const { message, fix } = await sentence(`sslmode=${mode}&sslrootcert=${stranger.file}`);
      assert.is(message, expected, mode);
      for (const part of ['database.options', '--db-options', 'GATEWAY_DB_OPTIONS'])
        assert.match(fix, part);
    }
    for (const options of ['sslmode=verify-full', 'sslmode=verify-full&sslrootcert=system'])
      assert.is((await sentence(options)).message, expected, options);
    assert.is((await sentence(`sslmode=prefer&sslrootcert=${stranger.file}`)).message, expected);
  },
);

database('a certificate for another host is refused by verify-full alone', async () => {
  await serve(issued.otherName);
  assert.equal(await encrypted('sslmode=require'), TLS);
  assert.equal(await encrypted(`sslmode=verify-ca&sslrootcert=${trusted.file}`), TLS);
  const { message } = await sentence(`sslmode=verify-full&sslrootcert=${trusted.file}`);
  assert.is(
    message,
    'TLS with Postgres at 127.0.0.1:<port> failed: its certificate is for another host',
  );
  await serve(issued.right);
});

database('a certificate that has expired is refused where certificates are verified', async () => {
  await serve(issued.expired);
  assert.equal(await encrypted('sslmode=require'), TLS);
  for (const mode of ['verify-ca', 'verify-full']) {
    const { message } = await sentence(`sslmode=${mode}&sslrootcert=${trusted.file}`);
    assert.is(
      message,
      'TLS with Postgres at 127.0.0.1:<port> failed: its certificate has expired',
      mode,
    );
  }
  await serve(issued.right);
});

database(
  'a server without TLS is reached by disable and allow, and by nothing that asks for TLS',
  async () => {
    await serve(undefined);
    assert.equal(await encrypted(''), PLAIN);
    assert.equal(await encrypted('sslmode=allow'), PLAIN);
    for (const mode of ['prefer', 'require'])
      assert.is(
        (await sentence(`sslmode=${mode}`)).message,
        'TLS with Postgres at 127.0.0.1:<port> failed: it does not speak TLS',
        mode,
      );
    await serve(issued.right, rule('host'), '');
  },
);

database(
  'over TLS a connection that is busy all the time is known to live, and one that is dead without a word is found',
  async () => {
    const way = await proxy({ port: server.port });
    try {
      await on(
        'sslmode=require',
        async ({ pool }) => {
          assert.is((await pool.query<{ ssl: boolean }>(ENCRYPTED)).rows[0]!.ssl, true);
          for (const untilMs = performance.now() + 4_000; performance.now() < untilMs;)
            await pool.query('select 1');
          way.freezeOpen();
          const said = await pool.query('select 1').then(() => 'it worked', String);
          assert.match(said, 'it received nothing while Postgres answered other connections');
        },
        { port: way.port },
      );
    } finally {
      await way.close();
    }
  },
);

database('a server that requires TLS says so to a client without', async () => {
  await serve(issued.right, rule('hostssl'));
  assert.equal(await encrypted('sslmode=prefer'), TLS);
  assert.is(
    (await sentence('')).message,
    'TLS with Postgres at 127.0.0.1:<port> failed: it requires TLS for this user',
  );
  await serve(issued.right);
});

database('a certificate of ours is shown where Postgres wants one', async () => {
  await serve(issued.right, rule('hostssl', 'clientcert=verify-ca'));
  const { client, strange } = issued;
  const shown = (it: Issued) =>
    `sslmode=verify-full&sslrootcert=${trusted.file}&sslcert=${it.certificate}&sslkey=${it.key}`;
  assert.equal(await encrypted(shown(client)), TLS);
  assert.is(
    (await sentence('sslmode=require')).message,
    'TLS with Postgres at 127.0.0.1:<port> failed: it requires a client certificate',
  );
  assert.is(
    (await sentence(shown(strange))).message,
    'TLS with Postgres at 127.0.0.1:<port> failed: it rejected the client certificate',
  );
  await serve(issued.right, rule('host'), shown(client));
});

database('files that cannot be used are told before anything is connected', () => {
  const told = (options: string) => {
    try {
      openDatabase(settings(options), { poolSize: 1, name: 'x' });
    } catch (error) {
      assert.ok(isGatewayError(error, 'tls_file'), String(error));
      assert.match(error.fix, '--db-options');
      return error.message;
    }
    throw new Error(`${options} was accepted`);
  };
  const { client, strange } = issued;
  assert.is(
    told('sslmode=verify-ca&sslrootcert=/none.pem'),
    'the certificate in /none.pem cannot be used: there is no such file or folder',
  );
  assert.match(told(`sslmode=verify-ca&sslrootcert=${client.key}`), 'it holds no PEM certificate');
  assert.match(
    told(`sslmode=require&sslcert=${client.certificate}&sslkey=${client.certificate}`),
    'it holds no PEM private key',
  );
  assert.match(
    told(`sslmode=require&sslcert=${client.certificate}&sslkey=${strange.key}`),
    'it is not the key of the certificate',
  );
});

database(
  'options of the session hold beside those that the prepared statements are planned by',
  () =>
    on(
      'options=-c search_path=mine -c work_mem=5MB&application_name=other&connect_timeout=3',
      async ({ pool, knex, connect }) => {
        const show = `select current_setting('search_path') as path, current_setting('work_mem') as memory, current_setting('enable_seqscan') as seqscan,
                         current_setting('application_name') as name`;
        const client = await connect();
        const theirs = { path: 'mine', memory: '5MB', name: 'other' };
        assert.equal((await pool.query(show)).rows, [{ ...theirs, seqscan: 'off' }]);
        assert.equal((await knex.raw<{ rows: unknown[] }>(show)).rows, [
          { ...theirs, seqscan: 'on' },
        ]);
        assert.equal((await client.query(show)).rows, [{ ...theirs, seqscan: 'on' }]);
        await client.end();
      },
    ),
);

database(
  'each pool opens as many connections as its setting says, and closes them when they are idle for its time',
  async () => {
    const count = async (name: string) =>
      on('', async ({ knex }) => {
        const sql = 'select count(*)::int as n from pg_stat_activity where application_name = ?';
        return (await knex.raw<{ rows: [{ n: number }] }>(sql, [name])).rows[0].n;
      });
    const db = openDatabase(settings('', { max_builder_connections: 2, idle_timeout_seconds: 1 }), {
      poolSize: 3,
      name: 'counted',
    });
    try {
      const many = Array.from({ length: 8 });
      const most: number[] = [];
      for (const ask of [
        () => db.pool.query('select pg_sleep(0.05)'),
        () => db.knex.raw('select pg_sleep(0.05)'),
      ]) {
        await Promise.all(many.map(() => ask()));
        most.push(await count('counted'));
      }
      assert.equal(most, [3, 5]);
      await until('the idle connections to be closed', async () => (await count('counted')) === 0, {
        withinMs: 10_000,
        everyMs: 200,
      });
    } finally {
      await db.close();
    }
  },
);

database('a connection that ends while it is taken and idle does not end the process', () =>
  on('', async ({ pool }) => {
    const client = await pool.connect();
    try {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      const ended = new Promise((resolve) => client.once('end', resolve));
      await pool.query('select pg_terminate_backend($1)', [rows[0]!.pid]);
      await within(ended, 10_000, 'the connection to end');
      assert.instance(await client.query('select').catch((error: unknown) => error), Error);
    } finally {
      client.release(true);
    }
  }),
);

database('a connection that ends while its session begins fails the statement alone', async () => {
  const line = await proxy({ port: server.port });
  const opened = openDatabase(settings('', { port: line.port }), { poolSize: 1, name: 'test' });
  try {
    const lost = line.loseAnswer('set transaction_timeout');
    const failure = await opened.pool.query('select 1').then(() => 'it worked', String);
    await lost;
    assert.match(failure, 'Connection terminated unexpectedly');
    assert.is((await opened.pool.query('select 1')).rowCount, 1);
  } finally {
    await opened.close();
    await line.close();
  }
});

database('an error of a statement names its columns and none of its values', () =>
  on('', async ({ knex }) => {
    for (const wrong of [
      knex('nowhere').insert({ secret: 'planted' }),
      knex.raw(String.raw`select from nowhere where secret = ? and a \? 'b'`, ['planted']),
    ]) {
      const said = await wrong.then(() => 'it worked', String);
      assert.match(said, / nowhere|"nowhere"/);
      assert.not.match(said, 'planted');
    }
  }),
);

database.run();
