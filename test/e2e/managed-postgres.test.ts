// deadline: 240 s, long
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { database } from '../support/database.js';
import { endpoint } from '../support/endpoint.js';
import { currentBuild, runGateway } from '../support/gateway.js';
import { production, subscribed } from '../support/production.js';
import { own } from '../support/services.js';
import { until } from '../support/until.js';

const managed = suite('e2e/managed-postgres');

const guide = fs.readFileSync(
  path.resolve(path.dirname(currentBuild), '../docs/guides/managed-postgres.md'),
  'utf8',
);

/** Runs the statements of the guide for a role and a database with other names. */
async function ownerOfDatabase(url: string, name: string): Promise<string> {
  const statements = [...guide.matchAll(/-c "([^"]+)"/g)].map(([, sql]) => sql!);
  assert.is(statements.length, 7, 'the guide creates a role and a database, and sets the planner');
  const admin = await database({ postgres: { url } });
  try {
    for (const sql of statements)
      await admin.rows(sql.replaceAll(/\bgateway\b/g, name).replace('$PASSWORD', 'secret'));
    const [role] = await admin.rows<{ rolsuper: boolean; rolcreatedb: boolean }>(
      'select rolsuper, rolcreatedb from pg_roles where rolname = $1',
      [name],
    );
    assert.equal(role, { rolsuper: false, rolcreatedb: false });
  } finally {
    await admin.close();
  }
  const owned = new URL(url);
  owned.username = name;
  owned.pathname = `/${name}`;
  return owned.href;
}

/** The most transactions a second of an agent without work, as the guide says. */
const IDLE_MAX = 6;

async function transactions(client: pg.Client): Promise<number> {
  // Sessions report with a delay of a second.
  await sleep(1_500);
  const { rows } = await client.query<{ n: number }>(
    'select (xact_commit + xact_rollback)::float8 as n from pg_stat_database where datname = current_database()',
  );
  return rows[0]!.n;
}

managed(
  'a role that owns only its database suffices, also if a pooler in transaction mode is the only address',
  async () => {
    const postgres = await own.postgres();
    const url = new URL(await ownerOfDatabase(postgres.url, 'shop'));
    // As strict as managed services are, and fewer sessions than the processes have connections.
    const bouncer = await own.pgbouncer(url.href, { default_pool_size: 12 });
    const receiver = await endpoint();
    const gateway = await production({
      agents: 1,
      postgres,
      migratedByBin: true,
      settings: {
        database: {
          port: bouncer.port,
          username: 'shop',
          database: 'shop',
          pooled: true,
        },
        agent: { interval_seconds: 3600 },
      },
    });
    const shop = new pg.Client({ connectionString: url.href });
    await shop.connect();
    try {
      // Only the poll makes the agent read the new endpoint: its next refresh is an hour away.
      await subscribed(gateway, receiver.url);
      const events = Array.from({ length: 50 }, (_, n) => ({
        event_type: 'order.paid',
        data: { n },
      }));
      await Promise.all(events.map((event) => gateway.api('POST', '/events', event)));
      await receiver.received(50);
      const sent = async () => {
        const { rows } = await shop.query<{ attempts: number }>(
          `select attempts from event_deliveries where status = 'success'`,
        );
        return rows.length === 50 && rows;
      };
      const rows = await until('all deliveries to be recorded', sent);
      assert.ok(rows.every(({ attempts }) => attempts === 1));
      const samples = async () => (await shop.query('select from backlog_samples')).rowCount;
      await until('work under a lock', samples);
      const { rows: listening } = await shop.query(
        `select from pg_stat_activity where query ~* '^listen' and datname = 'shop'`,
      );
      assert.equal(listening, []);
      for (const { process } of [...gateway.agents, { process: gateway.server }]) {
        const troubles = process.stderr
          .split('\n')
          .filter((line) => /"level":"(warn|error)"/.test(line) && !line.includes('KV is '));
        assert.equal(troubles, []);
      }
      const doctor = await runGateway(['utils', 'doctor'], { folder: gateway.server.folder });
      assert.match(doctor.stdout, /^ok +database /m);
      const status = await runGateway(['migrate', 'status'], { folder: gateway.server.folder });
      assert.is(status.code, 0, status.stderr);

      await gateway.server.terminate();
      const started = await transactions(shop);
      // Less would count what is done once a minute, and late reports of sessions, as the rate.
      const seconds = 30;
      await sleep(1_000 * seconds);
      const perSecond = ((await transactions(shop)) - started) / seconds;
      assert.ok(perSecond < IDLE_MAX, `an idle agent runs ${perSecond} transactions a second`);
    } finally {
      await shop.end();
      await gateway.close();
      await receiver.close();
      await bouncer.close();
      await postgres.close();
    }
  },
);

managed.run();
