import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migrate } from '../../../store/migrated.js';
import { database } from '../../../support/database.js';
import { gateway, runGateway } from '../../../support/gateway.js';

const up = suite('cli/commands/migrate/up');
const migrated = await database({ migrate });
up.after(() => migrated.close());

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
    assert.is(first.stderr, '', 'it waited for nobody');
    assert.equal(
      names((await runGateway(['migrate', 'down'], { config })).stdout, 'rolled back '),
      [applied.at(-1)],
    );
    assert.equal(
      names(
        (await runGateway(['migrate', 'down', '--max', '99'], { config })).stdout,
        'rolled back ',
      ),
      applied.slice(0, -1).reverse(),
    );
    assert.is(
      (await runGateway(['migrate', 'down'], { config })).stdout,
      'nothing to do: no migration is applied\n',
    );
  } finally {
    await db.close();
  }
});

up(
  'two at once both succeed: while another process migrates they say that they wait, and then one finds nothing to do',
  async () => {
    const db = await database();
    const config = { database: db.connection };
    try {
      // Acts as the first process: holds the lock until it is done.
      await db.rows(`select pg_advisory_lock(hashtext('gateway.migrate'))`);
      const [first, second] = [
        gateway(['migrate', 'up'], { config }),
        gateway(['migrate', 'up'], { config }),
      ];
      for (const it of [first, second])
        await it.line('waiting: another process is migrating this database');
      assert.is(first.stdout + second.stdout, '');
      await db.rows(`select pg_advisory_unlock(hashtext('gateway.migrate'))`);
      assert.equal(
        (await Promise.all([first.ended, second.ended])).map(({ code }) => code),
        [0, 0],
        first.stderr + second.stderr,
      );
      assert.equal(
        [first.stdout, second.stdout].filter(
          (text) => text === 'nothing to do: the database is up to date\n',
        ).length,
        1,
      );
    } finally {
      await db.close();
    }
  },
);

async function refusal(args: readonly string[]): Promise<string> {
  const config = {
    database: migrated.connection,
    encryption_key: Buffer.alloc(32, 7).toString('base64'),
    kv: { type: 'in-memory' },
  };
  const { code, stderr } = await runGateway(args, { config });
  assert.is(code, 1, args.join(' '));
  return stderr;
}

up(
  'a database from which a newer version removed something is refused by up, down, server and agent, with the name of the migration',
  async () => {
    await migrated.rows(
      `insert into gateway_migrations (name, batch, migration_time) values ('9999_contract_it', 9, now())`,
    );
    for (const args of [['migrate', 'up'], ['migrate', 'down'], ['server'], ['agent']])
      assert.match(
        await refusal(args),
        'error: the database is newer than this gateway: it has 9999_contract_it\n',
      );
    await migrated.rows(`delete from gateway_migrations where name = '9999_contract_it'`);
  },
);

up('server and agent refuse a database that lacks a migration and say what to run', async () => {
  const [last] = await migrated.rows<{ name: string }>(
    'delete from gateway_migrations where name = (select max(name) from gateway_migrations) returning name',
  );
  for (const command of ['server', 'agent'])
    assert.match(
      await refusal([command]),
      `error: the database lacks a migration: ${last!.name}\nfix:   run \`gateway migrate up\``,
    );
});

up(
  'Postgres that is away, refuses, or lacks the database is one clear error with the setting to change',
  async () => {
    const failing = async (connection: object) => {
      const { code, stderr } = await runGateway(['migrate', 'up'], {
        config: { database: { ...migrated.connection, ...connection } },
      });
      assert.is(code, 1);
      assert.not.match(stderr, /\n\s+at /);
      return stderr;
    };
    assert.match(
      await failing({ host: '127.0.0.1', port: 1 }),
      /^error: Postgres at 127.0.0.1:1 cannot be reached: nothing listens there\nfix: .*--db-host/,
    );
    assert.match(
      await failing({ host: 'no-such-host.invalid' }),
      /^error: Postgres at no-such-host.invalid:\d+ cannot be reached: no such host\n/,
    );
    assert.match(
      await failing({ database: 'no_such_database' }),
      /^error: there is no database no_such_database on Postgres at [^\n]+\nfix: .*--locale C no_such_database/,
    );
    assert.match(
      await failing({ username: 'nobody', password: 'hunter2' }),
      /^error: Postgres at \S+ refused the user nobody\nfix: .*--db-username/,
    );
  },
);

up('a wrong --max is wrong use', async () => {
  for (const max of ['0', '-1', '1.5']) {
    const { code, stderr } = await runGateway(['migrate', 'down', '--max', max]);
    assert.is(code, 2);
    assert.match(stderr, `error: --max must be a positive integer, not "${max}"`);
  }
});

up.run();
