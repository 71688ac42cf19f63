// deadline: 120 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { production, subscribed } from '../support/production.js';
import { until } from '../support/until.js';

const batches = suite('reliability/batches');

const entriesOf = ({ body }: { readonly body: Buffer }) =>
  (JSON.parse(body.toString()) as { events: { id: string }[] }).events.map(({ id }) => id);

for (const moment of ['collects', 'sends'] as const)
  batches(`an agent that is killed while it ${moment} a batch loses no delivery`, async () => {
    const inbox = await endpoint(moment === 'sends' ? { answer: { hang: true } } : {});
    const gateway = await production({ agents: 1 });
    try {
      const { uid } = await subscribed(gateway, inbox.url);
      const waitMs = moment === 'sends' ? 100 : 60_000;
      await gateway.api('PUT', `/endpoints/${uid}`, {
        batch: { max_events: 100, max_bytes: 100_000, max_wait_ms: waitMs },
      });
      await until(
        'the agent to collect',
        async () => {
          await gateway.api('POST', '/events/batch', {
            events: [1, 2, 3].map((n) => ({ event_type: 'a', data: { n } })),
          });
          const rows = await gateway.shard.rows<{ status: string }>(
            'select status from event_deliveries',
          );
          return moment === 'sends'
            ? inbox.requests.some((it) => it.body.includes('"events":['))
            : rows.filter(({ status }) => status === 'processing').length >= 3;
        },
        { everyMs: 500 },
      );
      const [agent] = gateway.agents.splice(0);
      await agent!.process.kill();
      inbox.answer({});
      await gateway.api('PUT', `/endpoints/${uid}`, {
        batch: { max_events: 100, max_bytes: 100_000, max_wait_ms: 100 },
      });
      await gateway.startAgent();
      await until(
        'all deliveries',
        async () => {
          const rows = await gateway.shard.rows<{ status: string }>(
            'select status from event_deliveries',
          );
          return rows.every(({ status }) => status === 'success');
        },
        { withinMs: 40_000 },
      );
      const ids = await gateway.shard.rows<{ id: string }>('select id from event_deliveries');
      const received = new Set(
        inbox.requests.flatMap((it) => (it.body.includes('"events":[') ? entriesOf(it) : [])),
      );
      assert.ok(received.size >= 3, 'in batches');
      assert.ok(ids.length >= received.size);
    } finally {
      await gateway.close();
      await inbox.close();
    }
  });

batches.run();
