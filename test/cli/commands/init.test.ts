import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { sealSecret } from '#store/config/secrets';
import { makeEndpoint, makeProject } from '../../store/made.js';
import { openUrl } from '../../store/migrated.js';
import { database } from '../../support/database.js';
import { runGateway } from '../../support/gateway.js';
import { freePort } from '../../support/ports.js';
import { redis } from '../../support/redis.js';
import { tempFolder } from '../../support/start/keep.js';
import { onTerminal } from '../../support/terminal.js';
import { until } from '../../support/until.js';

const init = suite('cli/commands/init');

const server = await database();
const kv = await redis();
const made: string[] = [];
init.after(async () => {
  for (const name of made) await server.rows(`drop database if exists "${name}" with (force)`);
  await kv.close();
  await server.close();
});

interface Written {
  readonly encryption_key: string;
  readonly database: Readonly<Record<string, unknown>>;
  readonly kv: Readonly<Record<string, unknown>>;
  readonly [other: string]: unknown;
}

const { host, port, username } = server.connection;
const kvFlags = [`--kv-host=${kv.connection.host}`, `--kv-port=${kv.connection.port}`];

/** A database that does not exist yet, and the flags for it. */
function missing(user = username) {
  const name = `${server.connection.database}_${made.length}`;
  made.push(name);
  const postgres = [`--db-host=${host}`, `--db-port=${port}`, `--db-username=${user}`];
  return { name, flags: [...postgres, `--db-database=${name}`, ...kvFlags] };
}

function written(folder: string): Written {
  return JSON.parse(fs.readFileSync(path.join(folder, 'gateway.json'), 'utf8')) as Written;
}

init('without a terminal it guesses nothing, and names the missing flags', async () => {
  const folder = tempFolder('init');
  const { code, stderr } = await runGateway(['init', '--db-host=127.0.0.1'], { folder });
  assert.is(code, 2);
  assert.match(
    stderr,
    'no questions are asked without a terminal, and --db-username, --db-database, --kv-host, --email are not given\n',
  );
  assert.match(stderr, '--yes uses the defaults');
  const none = await runGateway(['init', '--yes'], { folder });
  assert.match(
    none.stderr,
    'no questions are asked with --yes, and --email is not given\nfix:   set it\n',
  );
  const wrong = await runGateway(['init', '--yes', '--email=nobody'], { folder });
  assert.equal([wrong.code, fs.readdirSync(folder)], [2, []]);
  assert.match(wrong.stderr, '"nobody" is not an email address');
});

init(
  'it creates the database, writes a file for this user alone, migrates and creates a user',
  async () => {
    const folder = tempFolder('init');
    const { name, flags } = missing();
    const args = ['init', ...flags, '--email=ada@example.com'];
    const asked = await runGateway(args, { folder });
    assert.is(asked.code, 1, 'nobody agreed to create the database');
    assert.match(asked.stderr, `there is no database ${name}`);
    assert.equal(fs.readdirSync(folder), []);

    const env = { GATEWAY_DB_PASSWORD: 'a secret of Postgres' };
    const { code, stdout, stderr } = await runGateway([...args, '--yes'], { folder, env });
    assert.is(code, 0, stderr);
    assert.equal(fs.readdirSync(folder), ['gateway.json']);
    assert.is(fs.statSync(path.join(folder, 'gateway.json')).mode & 0o777, 0o600);
    const { encryption_key: key, ...stored } = written(folder);
    assert.equal(stored, {
      env: 'production',
      database: { host, port, username, password: 'a secret of Postgres', database: name },
      kv: { host: kv.connection.host, port: kv.connection.port },
    });
    assert.is(Buffer.from(key, 'base64').length, 32);
    const shown = stdout + stderr;
    for (const secret of [key, 'a secret of Postgres']) assert.not.ok(shown.includes(secret));
    assert.match(stderr, `created the database ${name}\n`);
    assert.match(stderr, /^ok +kv +Redis /m);
    assert.match(stderr, /^applied \d+ migrations$/m);
    assert.match(stdout, /^ {2}API key +gw_\S+$/m);
    assert.match(
      stdout,
      '\n  gateway server\n  gateway agent\n  curl http://localhost:5005/healthz?ready\n',
    );
    const status = await runGateway(['migrate', 'status'], { folder });
    assert.not.match(status.stdout + status.stderr, 'pending');

    const again = await runGateway([...args, '--yes'], { folder, env });
    assert.is(again.code, 0, again.stderr);
    assert.match(again.stderr, 'continues with ./gateway.json\n');
    assert.match(again.stderr, 'applied 0 migrations\nthe user ada@example.com exists');
    assert.not.match(again.stdout, 'API key');
    assert.is(written(folder).encryption_key, key);

    const elsewhere = tempFolder('init');
    const other = await runGateway([...args, '--yes'], { folder: elsewhere });
    assert.equal([other.code, fs.readdirSync(elsewhere)], [2, []]);
    assert.match(other.stderr, `another gateway uses the database ${name}`);
  },
);

init('a failure halfway writes nothing, or what the next run continues with', async () => {
  const folder = tempFolder('init');
  const { name, flags } = missing();
  const args = ['init', ...flags, '--email=ada@example.com', '--yes'];
  const dead = await freePort();
  const elsewhere = args.map((it) => it.replace(/^--kv-port=.*/, `--kv-port=${dead}`));
  const failed = await runGateway(elsewhere, { folder });
  assert.equal([failed.code, fs.readdirSync(folder)], [1, []]);
  assert.match(failed.stderr, new RegExp(`^failed +kv +.*:${dead}.*\\n +fix: `, 'm'));

  assert.is((await runGateway(args, { folder })).code, 0);
  const before = written(folder);
  await server.rows(`drop database "${name}" with (force)`);
  const { code, stdout, stderr } = await runGateway(['init', '--yes', '--email=ada@example.com'], {
    folder,
  });
  assert.is(code, 0, stderr);
  assert.match(stderr, `created the database ${name}\n`);
  assert.match(stdout, /^ {2}API key +gw_\S+$/m);
  assert.equal(written(folder), before);
});

init('a file with other settings stays', async () => {
  const folder = tempFolder('init');
  const [first, second] = [missing(), missing()];
  const args = ['init', '--email=ada@example.com', '--yes'];
  const config = {
    encryption_key: Buffer.alloc(32, 7).toString('base64'),
    logger: { level: 'warn' },
    database: { host, port, username, database: first.name },
    kv: kv.connection,
  };
  const refused = await runGateway([...args, ...second.flags], { folder, config });
  assert.is(refused.code, 2);
  assert.match(refused.stderr, './gateway.json exists and has another database.database\n');
  assert.equal(written(folder), config);

  const { encryption_key: _, ...keyless } = config;
  const other = await runGateway(args, { folder, config: keyless });
  assert.is(other.code, 2);
  assert.match(other.stderr, './gateway.json exists and has no encryption_key\n');
});

init('the database of another gateway is refused, by its secrets', async () => {
  const args = ['init', '--email=ada@example.com', '--yes'];
  const [other, own] = [tempFolder('init'), tempFolder('init')];
  const { name, flags } = missing();
  assert.is((await runGateway([...args, ...flags], { folder: other })).code, 0);
  const theirs = written(other);
  const config = { ...theirs, encryption_key: Buffer.alloc(32, 7).toString('base64') };
  const secretOf = async (key: string) => {
    const db = openUrl(server.url.replace(/[^/]+$/, name));
    try {
      const { id } = await makeEndpoint(db, (await makeProject(db)).id);
      const secrets = [sealSecret('whsec_', id, sealer(key))];
      await db
        .knex('endpoints')
        .where({ id })
        .update({ secrets: JSON.stringify(secrets) });
    } finally {
      await db.close();
    }
  };
  await secretOf(theirs.encryption_key);
  const { code, stderr } = await runGateway(args, { folder: own, config });
  assert.is(code, 2, stderr);
  assert.match(
    stderr,
    `another gateway uses the database ${name}: the encryption key here decrypts none of its secrets`,
  );
  assert.match(stderr, 'set encryption_key in ./gateway.json to the key of that gateway');

  // One secret that opens shows that the database is this gateway's.
  await secretOf(config.encryption_key);
  const opened = await runGateway(args, { folder: own, config });
  assert.is(opened.code, 0, opened.stderr);
});

init('a user who may not create the database is told, with what to run', async () => {
  const folder = tempFolder('init');
  const role = `${server.connection.database}_user`;
  const { name, flags } = missing(role);
  await server.rows(`create role "${role}" login`);
  try {
    const { code, stderr } = await runGateway(
      ['init', ...flags, '--email=ada@example.com', '--yes'],
      { folder },
    );
    assert.is(code, 1);
    assert.match(stderr, 'permission denied to create database');
    assert.match(stderr, `error: there is no database ${name}`);
    assert.match(stderr, `--locale C ${name}`);
  } finally {
    await server.rows(`drop role "${role}"`);
  }
});

init('on a terminal it asks, shows no password, and asks again for what fails', async () => {
  const folder = tempFolder('init');
  const { name } = missing();
  const dead = await freePort();
  const running = onTerminal(['init', `--kv-host=${kv.connection.host}`], {
    folder,
    columns: 300,
    env: { NO_COLOR: '1' },
  });
  let read = 0;
  const shown = (question: string) =>
    until(`the question ${question} in\n${running.shown}`, () => {
      const at = running.shown.indexOf(question, read);
      if (at >= 0) read = at + question.length;
      return at >= 0;
    });
  const answer = async (question: string, text: string) => {
    await shown(question);
    running.type(`${text}\r`);
  };
  await answer('Host of the database [localhost]: ', host);
  await answer('Port of the database [5432]: ', 'many');
  await answer('User of the database [postgres]: ', username);
  await answer('Password of the database [none]: ', 'a secret of Postgres');
  await answer('Name of the database [gateway]: ', name);
  await shown('database.port must be an integer');
  await answer('Host of the database [localhost]: ', host);
  await answer('Port of the database [5432]: ', String(port));
  await answer('User of the database [postgres]: ', username);
  await answer('Password of the database [none]: ', 'a secret of Postgres');
  await answer('Name of the database [gateway]: ', name);
  await answer(`There is no database ${name}. Create it? [Y/n] `, '');
  await answer('Port of the KV [6379]: ', String(dead));
  await answer('Password of the KV [none]: ', '');
  await answer('Host of the KV', '');
  await answer(`Port of the KV [${dead}]: `, String(kv.connection.port));
  await answer('Password of the KV [none]: ', '');
  await answer('Email of the first user: ', 'ada');
  await shown('"ada" is not an email address');
  await answer('Email of the first user: ', 'ada@example.com');
  assert.is(await running.ended, 0, running.shown);
  assert.not.match(running.shown, 'a secret of Postgres');
  assert.match(running.shown, /API key +gw_/);
  assert.is(written(folder).database['password'], 'a secret of Postgres');
});

init('Ctrl-C at a question leaves nothing', async () => {
  const folder = tempFolder('init');
  for (const key of ['\u0003', '\u0004']) {
    const running = onTerminal(['init'], { folder });
    await until('the question', () => running.shown.includes('Host of the database'));
    running.type(key);
    assert.is(await running.ended, 130);
    assert.equal(fs.readdirSync(folder), []);
  }
});

init.run();
