// deadline: 240 s, long
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { replicated, synchronous } from '../support/failover.js';
import { production, subscribed } from '../support/production.js';
import { own } from '../support/services.js';
import { until } from '../support/until.js';

const failover = suite('e2e/failover');

/** Clients that post events one after the other. */
const CLIENTS = 4;

failover(
  'with synchronous replication nothing acknowledged is lost when the primary dies and its standby takes over',
  async () => {
    const primary = await own.postgres(synchronous);
    const standby = await own.standby(primary, synchronous);
    const postgres = await replicated(primary, standby);
    const receiver = await endpoint();
    const gateway = await production({ agents: 2, postgres });
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

      await postgres.killPrimary();
      await postgres.promoteStandby();
      const before = acknowledged.size;
      await until('events after the failover', () => acknowledged.size >= before + 100);
      isPosting = false;
      await Promise.all(posting);

      const delivered = async () => {
        const rows = await gateway.database.rows<{ event_id: string }>(
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
      await gateway.close();
      await postgres.close();
      await receiver.close();
      await standby.close();
      await primary.close();
    }
  },
);

failover.run();
