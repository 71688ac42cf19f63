import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verifyPassword } from '@gateway/core/passwords';
import { database } from '../../support/database.js';
import { runGateway } from '../../support/gateway.js';

const bootstrap = suite('cli/commands/bootstrap');

bootstrap('prints user, password, organisation and API key as JSON; a second user of that email is refused', async () => {
  const db = await database();
  const config = { database: db.connection };
  try {
    const early = await runGateway(['bootstrap', '--email', 'ada@example.com'], { config });
    assert.is(early.code, 1);
    assert.match(early.stderr, 'fix:   run `gateway migrate up`');

    assert.is((await runGateway(['migrate', 'up'], { config })).code, 0);
    const { stdout, stderr, code } = await runGateway(['bootstrap', '--email', 'ada@example.com', '--first-name', 'Ada'], { config });
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
    assert.equal([user.email, user.first_name, user.last_name], ['ada@example.com', 'Ada', 'admin']);
    assert.match(key.key, /^gw_[0-9a-f]{16}_[\w-]{43}$/);
    const [row] = await db.rows<{ password_hash: string }>('select password_hash from users where id = $1', [user.id]);
    assert.is(await verifyPassword(password, row!.password_hash), true);
    const stored = JSON.stringify(await db.rows('select * from api_keys where organisation_id = $1', [organisation.id]));
    assert.not.match(stored, key.key.slice(20));

    const again = await runGateway(['bootstrap', '--email', 'ADA@example.com'], { config });
    assert.is(again.code, 1);
    assert.match(again.stderr, /^error: there is a user with the email ADA@example\.com already\n/);
  } finally {
    await db.close();
  }
});

bootstrap('without an email, with something else, or with an unknown format it is wrong use', async () => {
  for (const [args, sentence] of [
    [[], 'an email is required'],
    [['--email', ' '], 'an email is required'],
    [['--email', 'a@b.c', '--format', 'yaml'], '--format must be json, not "yaml"'],
  ] as const) {
    const { code, stderr } = await runGateway(['bootstrap', ...args]);
    assert.is(code, 2);
    assert.match(stderr, `error: ${sentence}\n`);
  }
});

bootstrap.run();
