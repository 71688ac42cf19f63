// deadline: 240 s
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Redis } from 'ioredis';
import { createMailer } from '#agent/notifications/mailer';
import { resolveConfig } from '#core/config/config';
import { changedSecretFiles } from '#core/config/given-value';
import { isGatewayError } from '#core/errors/errors';
import { Health } from '#core/process/health';
import { changingPassword } from '#core/process/password';
import { openKv } from '#store/kv/redis-kv';
import { openDatabase } from '#store/postgres/database';
import { connectionOf, database } from '../support/database.js';
import { requirePasswords } from '../support/passwords.js';
import { redisCluster } from '../support/redis-cluster.js';
import { own } from '../support/services.js';
import { smtp } from '../support/smtp.js';
import { tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';

const passwords = suite('store/changing-passwords');

const folder = tempFolder('passwords');
const file = join(folder, 'password');
const runs = join(folder, 'runs');
/** The ways to give a password that changes; the command counts its runs. */
const WAYS = {
  password_file: file,
  password_command: `echo >> ${runs}; cat ${file}`,
} as const;

for (const [way, value] of Object.entries(WAYS)) {
  passwords(`Postgres gets the password of ${way} for each new connection`, async () => {
    const postgres = await own.postgres();
    await requirePasswords(postgres, 'keeper');
    const admin = await database({ postgres });
    await admin.rows(`create role keeper login password 'first'`);
    writeFileSync(file, 'first\n');
    writeFileSync(runs, '');
    const settings = {
      scheme: 'postgres' as const,
      ...connectionOf(admin.url),
      username: 'keeper',
      [way]: value,
    };
    const opened = openDatabase(settings, { poolSize: 4, name: 'test' });
    try {
      await Promise.all(Array.from({ length: 4 }, () => opened.pool.query('select pg_sleep(0.2)')));
      if (way === 'password_command')
        assert.is(readFileSync(runs, 'utf8'), '\n', 'runs are shared');
      await admin.rows(`alter role keeper password 'second'`);
      writeFileSync(file, 'second');
      await opened.knex.raw('select 1');
      await (await opened.connect()).end();
      writeFileSync(file, 'wrong');
      await opened.connect().then(
        () => assert.unreachable(),
        (error: { code: string }) => assert.is(error.code, '28P01'),
      );
      rmSync(file);
      await opened.connect().then(
        () => assert.unreachable(),
        (error: unknown) => assert.ok(isGatewayError(error, 'password_unreadable'), String(error)),
      );
    } finally {
      await opened.close();
      await admin.close();
      await postgres.stop();
    }
  });

  passwords(`Redis gets the password of ${way} when it connects again`, async () => {
    const server = await own.redis();
    const admin = new Redis(server.url);
    const allow = (password: string) =>
      admin.call('ACL', 'SETUSER', 'keeper', 'reset', 'on', `>${password}`, '~*', '&*', '+@all');
    await allow('first');
    writeFileSync(file, 'first\n');
    const { hostname: host, port } = new URL(server.url);
    const kv = openKv(
      {
        type: 'redis',
        scheme: 'redis',
        host,
        port: Number(port),
        username: 'keeper',
        [way]: value,
      },
      () => undefined,
    );
    const answers = () =>
      kv.ping().then(
        () => true,
        () => false,
      );
    try {
      await until('the first password to be taken', answers);
      await allow('second');
      writeFileSync(file, 'second');
      await admin.call('CLIENT', 'KILL', 'USER', 'keeper');
      await until('the second password to be taken', answers);
    } finally {
      await kv.close();
      await admin.quit();
      await server.stop();
    }
  });
}

passwords('nodes of a Cluster get it too', async () => {
  const cluster = await redisCluster();
  const allow = async (password: string) => {
    for (const client of cluster.clients)
      await client.call(
        'ACL',
        'SETUSER',
        'keeper',
        'reset',
        'on',
        `>${password}`,
        '~*',
        '&*',
        '+@all',
      );
  };
  await allow('first');
  writeFileSync(file, 'first');
  const kv = openKv(
    {
      type: 'redis',
      scheme: 'redis',
      host: 'localhost',
      port: 1,
      username: 'keeper',
      cluster: { addresses: cluster.addresses },
      password_file: file,
    },
    () => undefined,
  );
  const answers = () =>
    kv.ping().then(
      () => true,
      () => false,
    );
  try {
    await until('the first password to be taken', answers);
    await allow('second');
    writeFileSync(file, 'second');
    for (const client of cluster.clients) await client.call('CLIENT', 'KILL', 'USER', 'keeper');
    await until('the second password to be taken', answers);
  } finally {
    await kv.close();
    await cluster.close();
  }
});

passwords('mails are sent with the password of the file', async () => {
  const login = { user: 'mailer', password: 'first' };
  const server = await smtp({ tls: 'none', login });
  const mailer = createMailer({
    smtp: {
      url: `smtp://127.0.0.1:${server.port}`,
      from: 'gateway@example.com',
      username: 'mailer',
      password_file: file,
      ssl: false,
      insecure_skip_verify: false,
    },
  });
  const mail = { to: ['ada@example.com'], subject: 'a', text: 'b' };
  try {
    for (const password of ['first', 'second']) {
      login.password = password;
      writeFileSync(file, `${password}\n`);
      await mailer.send(mail);
    }
    assert.is((await server.received(2)).length, 2);
  } finally {
    await server.close();
  }
});

passwords(
  'a file or command that gives no password is named, with the reason and no secret',
  async () => {
    for (const [given, sentence] of [
      [
        { password_file: join(folder, 'none') },
        'database.password_file gives no password: there is no such file',
      ],
      [
        { password_command: 'echo denied >&2; exit 3 # s3cret' },
        'database.password_command gives no password: it exited with status 3: denied',
      ],
      [{ password_command: 'true' }, 'it printed nothing'],
    ] as const) {
      const source = changingPassword('database', given)!;
      for (const read of [() => source.read(), async () => source.now()])
        await read().then(
          () => assert.unreachable(),
          (error: unknown) => {
            assert.ok(isGatewayError(error, 'password_unreadable'), String(error));
            assert.match(error.message, sentence);
            assert.not.match(error.message, 's3cret');
          },
        );
    }
  },
);

passwords('every secret can be in a file, and health tells when it has changed', () => {
  const rows = { file: {} };
  writeFileSync(file, 'k'.repeat(20));
  const { config, origins } = resolveConfig({
    ...rows,
    env: { GATEWAY_API_AUTH_FILE: file, GATEWAY_OIDC_CLIENT_SECRET_FILE: file },
  });
  assert.equal(
    [config.server.auth.api_keys, config.oidc.client_secret],
    [['k'.repeat(20)], 'k'.repeat(20)],
  );
  assert.is(origins.get('oidc.client_secret'), 'GATEWAY_OIDC_CLIENT_SECRET_FILE');
  const health = new Health();
  health.reportSecrets();
  assert.is(health.state, 'ok');
  writeFileSync(file, 'another');
  assert.equal(changedSecretFiles(), ['GATEWAY_API_AUTH_FILE', 'GATEWAY_OIDC_CLIENT_SECRET_FILE']);
  health.reportSecrets();
  assert.match(
    health.of('secrets')!.reason!,
    'GATEWAY_OIDC_CLIENT_SECRET_FILE have changed since this process started; restart it',
  );
  const refused = (env: Record<string, string>, sentence: string) =>
    assert.throws(
      () => resolveConfig({ ...rows, env }),
      (error: Error) => error.message.includes(sentence),
    );
  refused(
    { GATEWAY_LICENSE_KEY: 'a', GATEWAY_LICENSE_KEY_FILE: file },
    'GATEWAY_LICENSE_KEY and GATEWAY_LICENSE_KEY_FILE are both set',
  );
  refused(
    { GATEWAY_LICENSE_KEY_FILE: join(folder, 'none') },
    'cannot be read: there is no such file',
  );
  refused(
    { GATEWAY_DB_PASSWORD: 'a', GATEWAY_DB_PASSWORD_FILE: file },
    'database.password (from GATEWAY_DB_PASSWORD) and database.password_file (from GATEWAY_DB_PASSWORD_FILE) are both set',
  );
  const above = resolveConfig({
    env: { GATEWAY_DB_PASSWORD_FILE: file },
    file: { database: { password: 'x', password_command: 'y' } },
  }).config.database;
  assert.equal(
    [above.password, above.password_file, above.password_command],
    [undefined, file, undefined],
    'the environment is above the file',
  );
});

passwords.run();
