import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { database } from '../../../support/database.js';
import { runGateway } from '../../../support/gateway.js';

const up = suite('cli/commands/migrate/up');

up('applies all migrations once, and down rolls back as many as it is told', async () => {
  const db = await database();
  const config = { database: db.connection };
  const names = (text: string, verb: string) =>
    text.split('\n').flatMap((line) => (line.startsWith(verb) ? [line.slice(verb.length)] : []));
  try {
    const first = await runGateway(['migrate', 'up'], { config });
    const applied = names(first.stdout, 'applied ');
    assert.is(first.code, 0, first.stderr);
    assert.ok(applied.length >= 2);
    assert.is((await runGateway(['migrate', 'up'], { config })).stdout, 'nothing to do, the database is up to date\n');
    assert.equal(names((await runGateway(['migrate', 'down'], { config })).stdout, 'rolled back '), [applied.at(-1)]);
    assert.equal(
      names((await runGateway(['migrate', 'down', '--max', '99'], { config })).stdout, 'rolled back '),
      applied.slice(0, -1).reverse(),
    );
    assert.is((await runGateway(['migrate', 'down'], { config })).stdout, 'nothing to do, no migration is applied\n');
  } finally {
    await db.close();
  }
});

up('two at once both succeed, and each migration is applied once', async () => {
  const db = await database();
  const config = { database: db.connection };
  try {
    const both = await Promise.all([runGateway(['migrate', 'up'], { config }), runGateway(['migrate', 'up'], { config })]);
    assert.equal(
      both.map(({ code }) => code),
      [0, 0],
      both.map(({ stderr }) => stderr).join(''),
    );
    const applied = both.flatMap(({ stdout }) => stdout.split('\n').filter((line) => line.startsWith('applied ')));
    assert.is(new Set(applied).size, applied.length);
  } finally {
    await db.close();
  }
});

up('Postgres that is away, refuses, or lacks the database is one clear error with the setting to change', async () => {
  const db = await database();
  try {
    const failing = async (connection: object) => {
      const { code, stderr } = await runGateway(['migrate', 'up'], { config: { database: { ...db.connection, ...connection } } });
      assert.is(code, 1);
      assert.not.match(stderr, /\n\s+at /);
      return stderr;
    };
    assert.match(
      await failing({ host: '127.0.0.1', port: 1 }),
      /^error: Postgres at 127.0.0.1:1 cannot be reached: nothing listens there\nfix: .*--db-host/,
    );
    assert.match(await failing({ host: 'no-such-host.invalid' }), /^error: Postgres at no-such-host.invalid:\d+ cannot be reached: .*name/);
    assert.match(
      await failing({ database: 'no_such_database' }),
      /^error: there is no database no_such_database on Postgres at [^\n]+\nfix: .*createdb no_such_database/,
    );
    assert.match(
      await failing({ username: 'nobody', password: 'hunter2' }),
      /^error: Postgres at \S+ refused the user nobody\nfix: .*--db-username/,
    );
  } finally {
    await db.close();
  }
});

up('a wrong --max is wrong use', async () => {
  for (const max of ['0', '-1', 'all', '1.5']) {
    const { code, stderr } = await runGateway(['migrate', 'down', '--max', max]);
    assert.is(code, 2);
    assert.match(stderr, `error: --max must be a positive integer, not "${max}"`);
  }
});

up.run();
