// deadline: 240 s, long
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migrate } from '../store/migrated.js';
import { database, type Database } from '../support/database.js';
import {
  gateway,
  runGateway,
  type GatewayOptions,
  type GatewayProcess,
} from '../support/gateway.js';
import { freePort } from '../support/ports.js';
import { redis, type RedisDatabase } from '../support/redis.js';
import { own } from '../support/services.js';
import { discard, tempFolder } from '../support/start/keep.js';

const globalFlags = suite('e2e/global-flags');

/**
 * The flags of every command, as named in the specification, and its flags for metrics, tracing and
 * feature flags.
 */
const PROMISED = [
  '--config',
  '--db-database',
  '--db-host',
  '--db-options',
  '--db-password',
  '--db-port',
  '--db-scheme',
  '--db-type',
  '--db-username',
  '--kv-database',
  '--kv-host',
  '--kv-password',
  '--kv-port',
  '--kv-scheme',
  '--kv-type',
  '--kv-username',
  '--enable-feature-flag',
  '--metrics-backend',
  '--tracer-type',
] as const;
const tested = new Set<string>();

/** Declares a test of flags; flags share starts where possible. */
function flag(
  names: readonly (typeof PROMISED)[number][],
  behaviour: string,
  test: () => Promise<void>,
): void {
  for (const name of names) tested.add(name);
  globalFlags(`${names.join(' ')}: ${behaviour}`, test);
}

let db: Database;
let kv: RedisDatabase;
globalFlags.before(async () => {
  db = await database({ migrate });
  kv = await redis();
});
globalFlags.after(async () => {
  await kv.close();
  await db.close();
});

const settings = () => ({
  encryption_key: crypto.randomBytes(32).toString('base64'),
  database: db.connection,
  kv: kv.connection,
  server: { http: { bind: '127.0.0.1' } },
});

async function withAgent(
  flags: readonly string[],
  options: GatewayOptions,
  test: (agent: { process: GatewayProcess; get(path: string): Promise<string> }) => Promise<void>,
): Promise<void> {
  const port = await freePort();
  const process = gateway(['agent', '--port', String(port), ...flags], options);
  try {
    await process.healthy(port);
    await test({
      process,
      get: async (target) => (await fetch(`http://127.0.0.1:${port}${target}`)).text(),
    });
  } finally {
    await process.terminate();
  }
}

/** Runs `migrate status`, which only opens the database, with these flags. */
async function status(
  flags: readonly string[],
  config: object = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return runGateway(['migrate', 'status', ...flags], { config });
}

/** Returns the error of an agent that must not start. */
async function refused(flags: readonly string[], config: object): Promise<string> {
  const { code, stderr } = await runGateway(['agent', '--port', '0', ...flags], { config });
  assert.is(code, 1, stderr);
  return stderr;
}

const flagsOf = (section: string, fields: object) =>
  Object.entries(fields).flatMap(([name, value]) => [`--${section}-${name}`, String(value)]);

flag(
  [
    '--db-host',
    '--db-port',
    '--db-database',
    '--db-username',
    '--db-scheme',
    '--db-type',
    '--db-options',
  ],
  'each wins over what the file says, which leads nowhere',
  async () => {
    const wrong = {
      host: 'no-such-host.invalid',
      port: 1,
      database: 'no_such_database',
      username: 'nobody',
    };
    const right = {
      ...db.connection,
      scheme: 'postgresql',
      type: 'postgres',
      options: 'sslmode=disable',
    };
    const all = await status(flagsOf('db', right), {
      database: { ...wrong, options: 'sslmode=require' },
    });
    assert.is(all.code, 0, all.stderr);
    assert.match(all.stdout, /^0001_control_plane +applied/m);
    for (const [name, sentence] of [
      ['host', /Postgres at no-such-host\.invalid:\d+ cannot be reached/],
      ['port', /Postgres at \S+:1 cannot be reached/],
      ['database', /there is no database no_such_database/],
      ['username', /refused the user nobody/],
    ] as const) {
      const { [name]: _, ...others } = db.connection;
      const { code, stderr } = await status(flagsOf('db', others), { database: wrong });
      assert.is(code, 1);
      assert.match(stderr, sentence, `without --db-${name} the file counts`);
    }
    const encrypted = await status(['--db-options', 'sslmode=require'], {
      database: db.connection,
    });
    assert.is(encrypted.code, 1);
    assert.match(encrypted.stderr, 'it does not speak TLS');
  },
);

flag(['--db-password', '--db-username'], 'they are what Postgres is logged in with', async () => {
  const postgres = await own.postgres();
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    const { rows } = await client.query<{ file: string }>(
      `select current_setting('hba_file') as file`,
    );
    const file = rows[0]!.file;
    fs.writeFileSync(file, `host all ada all scram-sha-256\n${fs.readFileSync(file, 'utf8')}`);
    await client.query(`create role ada login password 'p@ss:w/rd'`);
    await client.query('select pg_reload_conf()');
    const { hostname, port } = new URL(postgres.url);
    const flags = [
      '--db-host',
      hostname,
      '--db-port',
      port,
      '--db-database',
      'postgres',
      '--db-username',
      'ada',
    ];
    const right = await status([...flags, '--db-password', 'p@ss:w/rd'], {
      database: { password: 'wrong' },
    });
    assert.is(right.code, 0, right.stderr);
    const wrong = await status([...flags, '--db-password', 'wrong'], {
      database: { password: 'p@ss:w/rd' },
    });
    assert.is(wrong.code, 1);
    assert.match(wrong.stderr, 'refused the user ada');
    assert.not.match(wrong.stderr, 'wrong');
  } finally {
    await client.end();
    await postgres.close();
  }
});

flag(['--db-scheme', '--db-type'], 'what is not known is refused with the list', async () => {
  for (const [given, sentence] of [
    [
      ['--db-scheme', 'mysql'],
      'database.scheme must be one of postgres, postgresql, not "mysql" (from --db-scheme)',
    ],
    [['--db-type', 'mysql'], 'database.type must be postgres, not "mysql" (from --db-type)'],
  ] as const) {
    const wrong = await status(given, { database: db.connection });
    assert.is(wrong.code, 2);
    assert.match(wrong.stderr, sentence);
  }
});

async function connections(user: string): Promise<string[]> {
  const list = (await kv.client.client('LIST')) as string;
  return list
    .split('\n')
    .flatMap((line) =>
      line.includes(` user=${user} `) ? [/ db=(\d+) /.exec(line)?.[1] ?? ''] : [],
    );
}

flag(
  [
    ...([
      '--config',
      '--kv-host',
      '--kv-port',
      '--kv-username',
      '--kv-password',
      '--kv-database',
      '--kv-type',
      '--kv-scheme',
    ] as const),
    ...(['--metrics-backend', '--enable-feature-flag', '--tracer-type'] as const),
  ],
  'an agent reads the file that is named, works in the Redis, as the user and in the database that are named, and has the metrics and the tracer that are named',
  async () => {
    const user = `ada_${crypto.randomBytes(4).toString('hex')}`;
    await kv.client.call('ACL', 'SETUSER', user, 'on', '>p@ss:w/rd', '~*', '&*', '+@all');
    const right = { ...kv.connection, type: 'redis', username: user, password: 'p@ss:w/rd' };
    const wrong = {
      type: 'in-memory',
      host: 'no-such-host.invalid',
      port: 1,
      username: 'nobody',
      password: 'wrong',
      database: '0',
    };
    const config = { ...settings(), kv: wrong };
    const folder = tempFolder('config');
    fs.writeFileSync(
      path.join(folder, 'other.json'),
      JSON.stringify({ ...config, agent: { mode: 'retry' } }),
    );
    const flags = [
      ...[
        '--config',
        'other.json',
        ...flagsOf('kv', right),
        '--metrics-backend=pullmetrics',
        '--enable-feature-flag=pullmetrics',
      ],
      ...['--tracer-type', 'otel', '--otel-collector-url', 'localhost:1'],
    ];
    try {
      await withAgent(
        flags,
        { folder, config: { database: { port: 1 } } },
        async ({ process, get }) => {
          assert.match(await process.line('The agent is ready.'), '"mode":"retry"');
          assert.equal([...new Set(await connections(user))], [kv.connection.database]);
          assert.match(await get('/metrics'), /^# TYPE gateway_\w+ /m);
          const { data } = JSON.parse(await get('/healthz')) as {
            data: { plugins: { name: string; state: string }[] };
          };
          const states = Object.fromEntries(data.plugins.map(({ name, state }) => [name, state]));
          assert.equal([states['otel'], states['apm']], ['active', 'inactive']);
        },
      );
      const ending = (changed: object) => refused(flagsOf('kv', { ...right, ...changed }), config);
      const [password, port, scheme] = await Promise.all([
        ending({ password: 'wrong' }),
        ending({ port: 1 }),
        ending({ scheme: 'rediss' }),
      ]);
      assert.match(password, /Redis at \S+ refused the connection: the user or password is wrong/);
      assert.match(port, /Redis at \S+:1 cannot be reached: nothing listens there/);
      assert.match(scheme, /^error: Redis at \S+ cannot be reached/m);
    } finally {
      await kv.client.call('ACL', 'DELUSER', user);
      discard(folder);
    }
  },
);

for (const [given, missing] of [
  [
    '--metrics-backend',
    /^# no metrics: pullmetrics is inactive: the feature flag pullmetrics is off/,
  ],
  [
    '--enable-feature-flag',
    /^# no metrics: pullmetrics is inactive: 2 gates are closed: no metrics backend is selected, metrics\.enabled is false; /,
  ],
] as const) {
  flag(
    ['--kv-type', given],
    'in-memory needs no Redis; no metrics without backend and feature flag, and what is missing is said',
    async () => {
      const config = { ...settings(), kv: { host: '127.0.0.1', port: 1 } };
      await withAgent(
        ['--kv-type', 'in-memory', `${given}=pullmetrics`],
        { config },
        async ({ get }) => {
          assert.match(await get('/metrics'), missing);
        },
      );
    },
  );
}

globalFlags(
  'every promised flag is tested, and is a flag of every command that reads settings',
  async () => {
    assert.equal([...tested].sort(), [...PROMISED].sort());
    for (const command of ['agent', 'server', 'bootstrap', 'retry', 'config', 'migrate up']) {
      const { stdout } = await runGateway([...command.split(' '), '--help']);
      for (const name of PROMISED)
        assert.ok(stdout.split(/\s+/).includes(name), `${name} of ${command}`);
    }
  },
);

globalFlags.run();
