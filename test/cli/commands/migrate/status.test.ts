import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migrate } from '../../../store/migrated.js';
import { database } from '../../../support/database.js';
import { runGateway } from '../../../support/gateway.js';

const status = suite('cli/commands/migrate/status');

interface State {
  name: string;
  state: string;
  applied_at: string | null;
  locks: { table: string; blocks: string; rows: number; seconds: number }[] | null;
}

const listed = async (connection: object) => {
  const { code, stdout, stderr } = await runGateway(['migrate', 'status', '--json'], {
    config: { database: connection },
  });
  assert.is(code, 0, stderr);
  return { states: JSON.parse(stdout) as State[], stderr };
};

status(
  'on a database that was never migrated everything is pending, and nothing is written',
  async () => {
    const db = await database();
    try {
      const { states, stderr } = await listed(db.connection);
      assert.is(states[0]?.name, '0001_control_plane');
      assert.ok(states.every(({ state, applied_at: at }) => state === 'pending' && at === null));
      assert.match(stderr, `${states.length} pending: \`gateway migrate up\` applies them.`);
      assert.equal(
        await db.rows(`select tablename from pg_tables where schemaname = 'public'`),
        [],
      );
    } finally {
      await db.close();
    }
  },
);

status('lists what was applied and when, what is pending, and what is newer', async () => {
  const db = await database({ migrate });
  try {
    await db.rows(
      `delete from gateway_migrations where name = (select max(name) from gateway_migrations)`,
    );
    await db.rows(
      `insert into gateway_migrations (name, batch, migration_time) values ('9999_from_the_future', 9, '2030-01-02T03:04:05Z')`,
    );
    const { states, stderr } = await listed(db.connection);
    assert.equal(
      states.slice(-3).map(({ state }) => state),
      ['applied', 'pending', 'unknown'],
    );
    const applied = await db.rows<{ name: string; at: Date }>(
      'select name, migration_time as at from gateway_migrations order by name',
    );
    assert.equal(
      states
        .filter(({ state }) => state !== 'pending')
        .map(({ name, applied_at: at }) => [name, at]),
      applied.map(({ name, at }) => [name, at.toISOString()]),
    );
    assert.match(stderr, '1 pending: `gateway migrate up` applies it.');
    assert.match(stderr, 'The database is newer than this gateway');

    const { stdout } = await runGateway(['migrate', 'status'], {
      config: { database: db.connection },
    });
    assert.match(
      stdout,
      /^NAME +STATE +APPLIED AT\n0001_control_plane +applied +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n/,
    );
    assert.match(stdout, /^9999_from_the_future +unknown +2030-01-02T03:04:05Z$/m);
  } finally {
    await db.close();
  }
});

status('estimates how long a pending migration blocks the tables of this database', async () => {
  const db = await database({ migrate });
  try {
    await db.rows(
      `delete from gateway_migrations where name in ('0035_held_deliveries', '0036_replayed_events')`,
    );
    await db.rows(
      `update pg_class set reltuples = 40000000 where relname = 'event_deliveries_default'`,
    );
    const { states, stderr } = await listed(db.connection);
    const locks = states.flatMap(({ name, locks }) => (locks ? [{ name, locks }] : []));
    const [held] = locks;
    const onDeliveries = held?.locks.find(({ table }) => table === 'event_deliveries');
    assert.is(held?.name, '0035_held_deliveries');
    assert.equal([onDeliveries?.blocks, onDeliveries?.rows], ['writes', 40_000_000]);
    assert.ok(onDeliveries!.seconds > 0, JSON.stringify(locks));
    assert.equal(locks[1], {
      name: '0036_replayed_events',
      locks: [{ table: 'events', blocks: 'reads and writes', rows: 0, seconds: 0 }],
    });
    assert.match(
      stderr,
      /Agents and servers may keep running, but work on these tables waits for about \d+ s/,
    );
    const { stdout } = await runGateway(['migrate', 'status'], {
      config: { database: db.connection },
    });
    assert.match(stdout, /^0035_held_deliveries +event_deliveries +writes +40000000 +[\d.]+ s$/m);
    assert.match(stdout, /^0036_replayed_events +events +reads and writes +0 +a moment$/m);
  } finally {
    await db.close();
  }
});

status.run();
