// deadline: 240 s, long
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { production, subscribed } from '../support/production.js';
import { proxy } from '../support/proxy.js';
import { own } from '../support/services.js';
import { until } from '../support/until.js';

const failover = suite('e2e/failover');

/** Clients that post events one after the other. */
const CLIENTS = 4;

async function query<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return (await client.query<Row>(sql).finally(() => client.end())).rows;
}

failover(
  'with synchronous replication nothing acknowledged is lost when the primary dies and its standby takes over',
  async () => {
    const primary = await own.postgres();
    const standby = await own.standby(primary);
    await query(primary.url, `alter system set synchronous_standby_names = '*'`);
    await query(primary.url, 'select pg_reload_conf()');
    const receiver = await endpoint();
    // The address of the database, which moves to the standby.
    const target = { port: primary.port };
    const address = await proxy(target);
    const gateway = await production({
      agents: 2,
      postgres: primary,
      settings: { database: { port: address.port } },
    });
    const acknowledged = new Set<string>();
    let isPosting = true;
    const post = async () => {
      for (let n = 0; isPosting; n++) {
        const event = { event_type: 'order.paid', data: { n } };
        const created = await gateway.api('POST', '/events', event).catch(() => sleep(100));
        if (created) acknowledged.add(created.uid);
      }
    };
    try {
      await subscribed(gateway, receiver.url);
      const posting = Array.from({ length: CLIENTS }, post);
      await until('events before the failover', () => acknowledged.size >= 100);

      await primary.crash();
      address.cut();
      await query(standby.url, 'select pg_promote()');
      target.port = standby.port;
      address.restore();
      const before = acknowledged.size;
      await until('events after the failover', () => acknowledged.size >= before + 100);
      isPosting = false;
      await Promise.all(posting);

      const url = new URL(gateway.database.url);
      url.port = String(standby.port);
      const delivered = async () => {
        const rows = await query<{ event_id: string }>(
          url.href,
          `select event_id from event_deliveries where status = 'success'`,
        );
        const ids = new Set(rows.map(({ event_id }) => event_id));
        return [...acknowledged].every((id) => ids.has(id));
      };
      await until('the delivery of every acknowledged event', delivered);
      await receiver.received(acknowledged.size);
      for (const { process } of gateway.agents) assert.not.match(process.stderr, /"level":"fatal"/);
    } finally {
      isPosting = false;
      // To drop the database of this test.
      await primary.start().catch(() => undefined);
      await query(primary.url, 'alter system reset synchronous_standby_names');
      await query(primary.url, 'select pg_reload_conf()');
      await gateway.close();
      await address.close();
      await receiver.close();
      await standby.close();
      await primary.close();
    }
  },
);

failover.run();
