import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { insertShard } from '#store/shards/shards';
import { migrate, openUrl } from '../../../store/migrated.js';
import { database, type Database } from '../../../support/database.js';
import { runHere } from '../../run-here.js';

const shards = suite('cli/commands/migrate/shards');

const encryption_key = Buffer.alloc(32, 7).toString('base64');

async function add(control: Database, name: string, { connection }: Pick<Database, 'connection'>) {
  const opened = openUrl(control.url);
  try {
    const password = sealer(encryption_key).seal('unused', ['shards', name, 'password']);
    const address = { ...connection, password, options: null };
    await insertShard(opened.pool, { name, address, schema: null, isCitus: false });
  } finally {
    await opened.close();
  }
}

const applied = async ({ rows }: Database) =>
  (await rows<{ name: string }>('select name from gateway_migrations order by name')).map(
    ({ name }) => name,
  );

shards('each shard is migrated, and one that is away is named and done later', async () => {
  const [control, big] = [await database({ migrate }), await database()];
  const config = { database: control.connection, encryption_key };
  try {
    await add(control, 'big', big);
    await add(control, 'away', { connection: { ...big.connection, port: 1 } });
    const status = await runHere('migrate:status', ['--json'], config);
    assert.is(status.code, 1);
    const states = JSON.parse(status.stdout) as { shard: string; name: string; state: string }[];
    assert.equal(
      states.find(({ state }) => state === 'pending'),
      { shard: 'big', name: '0051_data_plane', state: 'pending', applied_at: null, locks: [] },
    );
    assert.match(status.stderr, 'away: Postgres at 127.0.0.1:1 cannot be reached');
    assert.match((await runHere('migrate:status', [], config)).stdout, /^SHARD +NAME +STATE/);

    await control.rows(`update shards set port = 1 where name = 'big'`);
    const failed = await runHere('migrate:up', [], config);
    assert.is(failed.code, 1);
    assert.is(failed.stdout, 'default: nothing to do: the database is up to date\n');
    assert.match(failed.stderr, 'error: 2 shards failed, and the others are done:');
    assert.match(failed.stderr, /away: Postgres at [^]*big: Postgres at /);

    await control.rows(`update shards set port = $1 where name = 'big'`, [big.connection.port]);
    await control.rows(`delete from shards where name = 'away'`);
    const up = await runHere('migrate:up', [], config);
    assert.is(up.code, 0, up.stderr);
    assert.match(up.stdout, /^big: applied 0051_data_plane$/m);
    assert.is((await applied(big))[0], '0051_data_plane');
  } finally {
    await Promise.all([control.close(), big.close()]);
  }
});

shards('down rolls back the newest migrations over all shards, and continues a stop', async () => {
  const [control, big] = [await database({ migrate }), await database()];
  const config = { database: control.connection, encryption_key };
  try {
    await add(control, 'big', big);
    await runHere('migrate:up', [], config);
    const before = [await applied(control), await applied(big)];
    const down = await runHere('migrate:down', ['--max', '99', '--drop-data'], config);
    assert.is(down.code, 1);
    assert.match(down.stderr, /there are other shards than the default one/);
    assert.is((await applied(big))[0], '0051_data_plane', 'a shard keeps its tables');

    // A process stopped after the control database: only the shard still has the migration.
    await control.rows(`delete from gateway_migrations where name > '0052_shards'`);
    await big.rows(
      `insert into gateway_migrations (name, batch, migration_time) select '9999_gone', 1, now()`,
    );
    const rest = await runHere('migrate:down', [], config);
    assert.match(rest.stderr, /big: the database of the shard big is newer/);
    assert.equal(
      await applied(control),
      before[0]!.filter((name) => name <= '0052_shards'),
    );
  } finally {
    await Promise.all([control.close(), big.close()]);
  }
});

shards.run();
