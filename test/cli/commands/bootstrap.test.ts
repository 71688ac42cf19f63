import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verifyPassword } from '#store/people/passwords';
import { migrate } from '../../store/migrated.js';
import { database } from '../../support/database.js';
import { gateway, runGateway, type GatewayProcess } from '../../support/gateway.js';
import { freePort } from '../../support/ports.js';

const bootstrap = suite('cli/commands/bootstrap');
const db = await database({ migrate });
bootstrap.after(() => db.close());

bootstrap('on a database that was not migrated it says what to run', async () => {
  const empty = await database();
  try {
    const { code, stderr } = await runGateway(['bootstrap', '--email', 'ada@example.com'], {
      config: { database: empty.connection },
    });
    assert.is(code, 1);
    assert.match(stderr, 'fix:   run `gateway migrate up`');
  } finally {
    await empty.close();
  }
});

bootstrap(
  'prints user, password, organisation and API key as JSON; a second user of that email is refused',
  async () => {
    const config = { database: db.connection };
    const { stdout, stderr, code } = await runGateway(
      ['bootstrap', '--email', 'ada@example.com', '--first-name', 'Ada'],
      { config },
    );
    assert.is(code, 0, stderr);
    const {
      user,
      password,
      organisation,
      api_key: key,
    } = JSON.parse(stdout) as {
      user: { id: string; email: string; first_name: string; last_name: string };
      password: string;
      organisation: { id: string };
      api_key: { key: string };
    };
    assert.equal(
      [user.email, user.first_name, user.last_name],
      ['ada@example.com', 'Ada', 'admin'],
    );
    assert.match(key.key, /^gw_[0-9a-f]{16}_[\w-]{43}$/);
    const [row] = await db.rows<{ password_hash: string }>(
      'select password_hash from users where id = $1',
      [user.id],
    );
    assert.is(await verifyPassword(password, row!.password_hash), true);
    const stored = JSON.stringify(
      await db.rows('select * from api_keys where organisation_id = $1', [organisation.id]),
    );
    assert.not.match(stored, key.key.slice(20));

    const again = await runGateway(['bootstrap', '--email', 'ADA@example.com'], { config });
    assert.is(again.code, 1);
    assert.match(again.stderr, /^error: a user with the email ADA@example\.com already exists\n/);
  },
);

bootstrap('names that the API refuses are refused, and nobody is created', async () => {
  const config = { database: db.connection };
  for (const [flag, value, problem] of [
    ['--first-name', 'Ada\u001b[31m', '--first-name contains control characters'],
    ['--last-name', 'x'.repeat(101), '--last-name is longer than 100 characters'],
    ['--email', 'a\u202eb@example.com', '--email contains control characters'],
  ] as const) {
    const { code, stderr } = await runGateway(
      ['bootstrap', ...(flag === '--email' ? [] : ['--email', 'eve@example.com']), flag, value],
      {
        config,
      },
    );
    assert.equal(
      [code, stderr.includes(`error: ${problem}\n`), stderr.includes(value)],
      [2, true, false],
      stderr,
    );
  }
  assert.equal(await db.rows(`select from users where email = 'eve@example.com'`), []);
});

bootstrap(
  '--format human is a block that says what to keep and ends with a call of the API that works',
  async () => {
    const port = await freePort();
    const config = {
      database: db.connection,
      encryption_key: Buffer.alloc(32, 7).toString('base64'),
      server: { http: { port, bind: '127.0.0.1' } },
      root_path: '/gw',
      host: `127.0.0.1:${port}`,
      kv: { type: 'in-memory' },
    };
    let server: GatewayProcess | undefined;
    try {
      const { stdout, code } = await runGateway(
        ['bootstrap', '--email', 'bob@example.com', '--format', 'human'],
        { config },
      );
      assert.is(code, 0);
      assert.match(
        stdout,
        /^A user was created\. Save the password and the API key now: they are not shown again\.\n/,
      );
      assert.match(stdout, /^ {2}email +bob@example\.com$/m);
      assert.match(stdout, /^ {2}name +admin admin$/m);
      assert.match(stdout, /^ {2}password +\S+$/m);
      const [, key] = /^ {2}API key +(gw_\S+)$/m.exec(stdout) ?? [];
      assert.match(stdout, `\n  http://127.0.0.1:${port}/gw/\n`);
      const curl = stdout.slice(stdout.indexOf('  curl'));
      assert.match(curl, `http://127.0.0.1:${port}/gw/api/v1/projects`);
      assert.match(curl, `'Authorization: Bearer ${key}'`);

      server = gateway(['server'], { config });
      await server.line('Ready.');
      const [, body = ''] = /-d '(.*)'/.exec(curl) ?? [];
      const response = await fetch(`http://127.0.0.1:${port}/gw/api/v1/projects`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body,
      });
      assert.is(response.status, 201, await response.text());
    } finally {
      await server?.terminate();
    }
  },
);

bootstrap(
  'without an email, with something else, or with an unknown format it is wrong use',
  async () => {
    for (const [args, sentence] of [
      [[], 'an email is required'],
      [['--email', ' '], 'an email is required'],
      [
        ['--email', 'a@b.c', '--format', 'humn'],
        '--format must be one of json, human, not "humn"; did you mean human?',
      ],
    ] as const) {
      const { code, stderr } = await runGateway(['bootstrap', ...args]);
      assert.is(code, 2);
      assert.match(stderr, `error: ${sentence}\n`);
    }
  },
);

bootstrap.run();
