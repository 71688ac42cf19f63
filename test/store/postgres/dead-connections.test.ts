import net from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openDatabase, type Database } from '#store/postgres/database';
import { database as makeDatabase } from '../../support/database.js';
import { loopback } from '../../support/ports.js';
import { proxy, type Proxy } from '../../support/proxy.js';
import { together } from '../../support/together.js';
import { until, within } from '../../support/until.js';

const silent = suite('store/postgres/dead-connections');
const beside = together(silent);

type Rewrite = NonNullable<Parameters<typeof proxy>[1]>['rewrite'];

/**
 * A gateway's connections to a private database through a proxy. Statements time out only after a
 * minute.
 */
async function behindProxy(
  use: (db: Database, way: Proxy) => Promise<void>,
  { rewrite }: { rewrite?: Rewrite } = {},
): Promise<void> {
  const made = await makeDatabase();
  const way = await proxy(made.connection, rewrite ? { rewrite } : {});
  const db = openDatabase(
    { scheme: 'postgres', ...made.connection, port: way.port },
    { poolSize: 4, name: 'gateway-test', answerMs: 60_000 },
  );
  try {
    await use(db, way);
  } finally {
    await db.close();
    await way.close();
    await made.close();
  }
}

/** `answered`, or the error message of a statement. */
async function outcome(statement: PromiseLike<unknown>): Promise<string> {
  try {
    await statement;
    return 'answered';
  } catch (error) {
    return (error as Error).message;
  }
}
const DEAD = 'Connection terminated: it received nothing while Postgres answered other connections';
/** The limit for detecting a dead connection on any machine, below the statement timeout. */
const FOUND_MS = 30_000;

beside(
  'a statement on a connection that is dead without a word fails soon, in either pool, and the next one works',
  () =>
    behindProxy(async ({ pool, knex }, way) => {
      for (const ask of [() => pool.query('select 1'), () => knex.raw('select 1')]) {
        assert.is(await outcome(ask()), 'answered');
        way.freezeOpen();
        // The builder adds a prefix with the statement.
        assert.ok(
          (await within(outcome(ask()), FOUND_MS, 'the end of the statement')).endsWith(DEAD),
        );
        assert.is(await outcome(ask()), 'answered');
      }
    }),
);

beside('with a dead connection go those that are idle, the one that listens too', () =>
  behindProxy(async ({ pool, knex, connect }, way) => {
    await Promise.all([
      ...Array.from({ length: 4 }, () => pool.query('select pg_sleep(0.1)')),
      knex.raw('select 1'),
    ]);
    const listening = await connect();
    const ended = new Promise((resolve) => listening.once('end', resolve));
    assert.is(way.connections, 6);
    way.freezeOpen();
    assert.is(
      await within(outcome(pool.query('select 1')), FOUND_MS, 'the end of the statement'),
      DEAD,
    );
    await within(ended, 5_000, 'the end of the connection that listens');
    await until('no connection to be left', () => way.connections === 0, { withinMs: 5_000 });
    assert.is(await outcome(knex.raw('select 1')), 'answered');
  }),
);

beside(
  'a statement that takes long on a connection that lives is left alone, and so is one in a transaction that waits',
  () =>
    behindProxy(async ({ pool }) => {
      const client = await pool.connect();
      await client.query('begin');
      const [slow, waiting] = await Promise.all([
        outcome(pool.query('select pg_sleep(6)')),
        outcome(
          new Promise((resolve) => setTimeout(resolve, 6_000)).then(() => client.query('commit')),
        ),
      ]);
      client.release();
      assert.equal([slow, waiting], ['answered', 'answered']);
    }),
);

beside('a long statement that a slow network is still carrying is left alone', async () => {
  const made = await makeDatabase();
  // Data to Postgres is limited to a megabyte per second; responses are fast.
  const slow = net.createServer((client) => {
    const server = net.connect(made.connection.port, made.connection.host);
    server.pipe(client);
    client.on('data', (bytes) => {
      client.pause();
      server.write(bytes);
      setTimeout(() => client.resume(), bytes.length / 1_000);
    });
    client.on('close', () => server.destroy());
    for (const socket of [client, server]) socket.on('error', () => undefined);
  });
  const port = await loopback(slow);
  const db = openDatabase(
    { scheme: 'postgres', ...made.connection, port },
    { poolSize: 1, name: 'gateway-test', answerMs: 60_000 },
  );
  try {
    // The second execution uses the prepared statement, and starts with the long value.
    for (const length of [1, 5_000_000])
      assert.is(
        await outcome(
          db.pool.query({ name: 'long', text: 'select length($1)', values: ['x'.repeat(length)] }),
        ),
        'answered',
      );
  } finally {
    await db.close();
    slow.close();
    await made.close();
  }
});

beside('while Postgres answers nobody, nothing is said of a single connection', () =>
  behindProxy(async ({ pool }, way) => {
    assert.is(await outcome(pool.query('select 1')), 'answered');
    way.freeze();
    let ended = '';
    const asked = outcome(pool.query('select 1')).then((how) => (ended = how));
    await new Promise((resolve) => setTimeout(resolve, 8_000));
    assert.is(ended, '');
    way.restore();
    assert.is(
      await within(asked, 5_000, 'the end of the statement'),
      'Connection terminated unexpectedly',
    );
  }),
);

/**
 * Reports another id than the backend's, as poolers do:
 * https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
function otherIds(bytes: Buffer): Buffer {
  const at = bytes.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
  if (at >= 0) bytes.writeInt32BE(1, at + 5);
  return bytes;
}

beside('behind a pooler, whose ids are its own, nothing is said of a connection', () =>
  behindProxy(
    async ({ pool }) => {
      assert.is(await outcome(pool.query('select pg_sleep(6)')), 'answered');
    },
    { rewrite: otherIds },
  ),
);

silent.run();
