// deadline: 240 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migrate } from '../store/migrated.js';
import { database } from '../support/database.js';
import { endpoint } from '../support/endpoint.js';
import { runGateway } from '../support/gateway.js';
import { production, subscribed } from '../support/production.js';
import { own, services } from '../support/services.js';
import { testShard } from '../support/shard.js';
import { until } from '../support/until.js';

const pooler = suite('e2e/pooler');

pooler(
  'behind PgBouncer in transaction mode a server and two agents work as without it',
  async () => {
    const postgres = new URL((await services.postgres()).url);
    // Fewer sessions than concurrent statements, so that sessions change between statements.
    const bouncer = await own.pgbouncer(postgres.href, { default_pool_size: 4 });
    const receiver = await endpoint();
    const direct = { host: postgres.hostname, port: Number(postgres.port) };
    const database = { host: '127.0.0.1', port: bouncer.port, direct };
    const gateway = await production({
      agents: 2,
      settings: { database, agent: { interval_seconds: 3600 } },
    });
    try {
      // Only a notification makes the agents read the new endpoint: their next refresh is an hour
      // away.
      await subscribed(gateway, receiver.url);
      const events = Array.from({ length: 200 }, (_, n) => ({
        event_type: 'order.paid',
        data: { n },
      }));
      const created = await Promise.all(
        events.map((event) => gateway.api('POST', '/events', event)),
      );
      await receiver.received(200);
      const sent = await until('all deliveries to be recorded', async () => {
        const rows = await gateway.database.rows<{ event_id: string; attempts: number }>(
          `select event_id, attempts from event_deliveries where status = 'success'`,
        );
        return rows.length === 200 && rows;
      });
      assert.equal(
        new Set(sent.map(({ event_id }) => event_id)),
        new Set(created.map(({ uid }) => uid)),
      );
      assert.ok(sent.every(({ attempts }) => attempts === 1));

      const sessions = await gateway.database.rows<{ statement: string }>(
        `select query as statement from pg_stat_activity where datname = current_database() and application_name = 'gateway-agent' and query like 'listen %'`,
      );
      assert.is(
        sessions.length,
        testShard ? 4 : 2,
        'each agent listens per shard, past the pooler',
      );
      for (const { process } of gateway.agents) {
        const troubles = process.stderr
          .split('\n')
          .filter((line) => /"level":"(warn|error)"/.test(line));
        assert.equal(troubles, []);
      }
      const doctor = await runGateway(['utils', 'doctor'], { folder: gateway.server.folder });
      assert.match(doctor.stdout, /^ok +database /m);
    } finally {
      await gateway.close();
      await receiver.close();
      await bouncer.close();
    }
  },
);

pooler('what would not work behind a pooler is refused at the start, with its reason', async () => {
  const db = await database({ migrate });
  const postgres = new URL(db.url);
  const other = await own.postgres();
  const transaction = await own.pgbouncer(db.url);
  const ignoring = await own.pgbouncer(db.url, {
    ignore_startup_parameters: 'options,statement_timeout',
  });
  const statement = await own.pgbouncer(db.url, { pool_mode: 'statement' });
  const direct = { host: postgres.hostname, port: Number(postgres.port) };
  const refusal = async (settings: object): Promise<string> => {
    const config = {
      encryption_key: Buffer.alloc(32, 7).toString('base64'),
      kv: { type: 'in-memory' },
      database: { ...db.connection, ...settings },
    };
    const { code, stderr } = await runGateway(['agent', '--port', '0'], { config });
    assert.is(code, 1, stderr);
    return stderr;
  };
  try {
    const expected: [object, RegExp][] = [
      [
        { port: transaction.port },
        /a connection pooler answers at 127\.0\.0\.1:\d+, where Postgres itself is expected: it refuses a startup/,
      ],
      [
        { port: ignoring.port },
        /where Postgres itself is expected: several connections share one session/,
      ],
      [
        { port: transaction.port, direct: { ...direct, port: ignoring.port } },
        /several connections share one session/,
      ],
      [{ port: statement.port, direct }, /it is in statement mode, which allows no transactions/],
      [
        { port: transaction.port, database: 'postgres', direct: { ...direct, port: other.port } },
        /database\.direct\.host points to a different Postgres/,
      ],
      [
        { port: transaction.port, direct, options: 'options=-c work_mem=1MB' },
        /database\.options holds options=….*would not keep/,
      ],
    ];
    for (const [settings, sentence] of expected) {
      const told = await refusal(settings);
      assert.match(told, sentence);
      assert.match(told, /^fix: /m);
    }
  } finally {
    for (const server of [transaction, ignoring, statement, other]) await server.close();
    await db.close();
  }
});

pooler.run();
