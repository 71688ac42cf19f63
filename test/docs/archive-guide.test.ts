import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { acceptEvents } from '#store/events/events';
import { batch, newDelivery, newEvent } from '../store/batches.js';
import { openUrl } from '../store/migrated.js';
import { endpoint } from '../support/endpoint.js';
import { production, subscribed } from '../support/production.js';
import { tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';
import { blocksOf, runBlocks } from './page.js';

const guide = suite('docs/archive-guide');

guide(
  'an agent archives an old day, and the commands of docs/guides/archive.md find it and send it again',
  async () => {
    const url = tempFolder('archive');
    const gateway = await production({ settings: { archive: { url } } });
    const inbox = await endpoint();
    try {
      const { projectId, database } = gateway;
      const { uid: endpointId } = await subscribed(gateway, inbox.url, ['order.paid']);
      const occurredAtMs = Date.now() - 40 * 86_400_000;
      const day = new Date(occurredAtMs).toISOString().slice(0, 10);
      await database.rows('select ensure_day($1::date)', [day]);
      const events = [1, 2].map((n) =>
        newEvent({
          projectId,
          occurredAtMs: occurredAtMs + n,
          eventType: 'order.paid',
          data: ` {"order": "o-${n}", "total": 1.0}`,
        }),
      );
      const db = openUrl(database.url);
      await acceptEvents(
        db.pool,
        batch(events, {
          deliveries: events.map((it) => newDelivery(it, { endpointId, status: 'discarded' })),
        }),
      );
      await db.close();
      await gateway.startAgent();
      const manifest = path.join(url, `project=${projectId}/day=${day}/_manifest.json`);
      await until('the day to be archived', () => fs.existsSync(manifest));
      const left = `select from pg_class where relname ~ 'events_.*${day.replaceAll('-', '')}'`;
      await until('it to be dropped', async () => (await database.rows(left)).length === 0);

      await runBlocks(blocksOf('docs/guides/archive.md'), {
        cwd: gateway.run.folder,
        env: { PROJECT_ID: projectId, DAY: day },
        replaced: { '0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c': projectId, '2026-01-31': day },
      });
      const requests = await inbox.received(2);
      assert.equal(
        requests.map(({ body }) => body.toString()).sort(),
        events.map(({ data }) => data),
      );
    } finally {
      await gateway.close();
      await inbox.close();
    }
  },
);

guide.run();
