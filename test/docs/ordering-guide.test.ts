import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { production, subscribed } from '../support/production.js';
import { until } from '../support/until.js';
import { blocksOf, runBlocks } from './page.js';

const guide = suite('docs/ordering-guide');

interface Order {
  readonly order: { readonly id: string };
  readonly n: number;
}

guide(
  'deliveries are sent as docs/guides/ordering.md says, and its commands release and skip a parked key',
  async () => {
    const failing = new Set(['a2', 'a3']);
    const underWay = new Set<string>();
    const overlaps: string[] = [];
    const inbox = await endpoint({
      answer: async ({ body }) => {
        const { order, n } = JSON.parse(body.toString()) as Order;
        if (underWay.has(order.id)) overlaps.push(`${order.id}${n}`);
        underWay.add(order.id);
        // Later ones answer faster, so that without an order they would come first.
        await new Promise((resolve) => setTimeout(resolve, 60 - 10 * n));
        underWay.delete(order.id);
        return { status: failing.has(`${order.id}${n}`) ? 500 : 200 };
      },
    });
    const gateway = await production({ agents: 2 });
    try {
      const { projectId, apiKey, serverPort } = gateway;
      const { uid: endpointId } = await subscribed(gateway, inbox.url);
      await gateway.api('PUT', `/endpoints/${endpointId}`, {
        strategy: { type: 'linear', duration: 1, retry_count: 0 },
      });
      const env = {
        GATEWAY_URL: `http://127.0.0.1:${serverPort}`,
        GATEWAY_KEY: apiKey,
        PROJECT_ID: projectId,
        ENDPOINT_ID: endpointId,
      };
      const blocks = blocksOf('docs/guides/ordering.md').filter(({ kind }) => kind === 'sh');
      const run = (from: number, to: number) => runBlocks(blocks.slice(from, to), { ...at, env });
      const at = { cwd: gateway.run.folder };
      await run(0, 1);
      for (let n = 1; n <= 5; n++)
        for (const id of ['a', 'b'])
          await gateway.api('POST', '/events', {
            event_type: 'order.paid',
            data: { order: { id }, n },
          });
      const sent = (id: string) =>
        inbox.requests.flatMap(({ body }) => {
          const { order, n } = JSON.parse(body.toString()) as Order;
          return order.id === id ? [n] : [];
        });
      const parkedAt = (reason: number) =>
        until('the key to be parked', async () => {
          const keys = await gateway.api<{ content: { value: string | null; depth: number }[] }>(
            'GET',
            `/endpoints/${endpointId}/ordered-keys`,
          );
          return keys.content[0]?.depth === reason;
        });
      await until('the other key to be sent', () => sent('b').length === 5);
      assert.equal(sent('b'), [1, 2, 3, 4, 5]);
      await parkedAt(4);
      assert.equal(sent('a'), [1, 2], 'behind the failed one, nothing is sent');

      failing.delete('a2');
      await run(1, 3);
      await parkedAt(3);
      assert.equal(sent('a'), [1, 2, 2, 3], 'it was released');

      await run(1, 2);
      await runBlocks([blocks[1]!, blocks[3]!], { ...at, env });
      await until('the rest to be sent', () => sent('a').length === 6);
      assert.equal(sent('a'), [1, 2, 2, 3, 4, 5], 'the third was skipped');
      assert.equal(overlaps, [], 'one of a key at a time');
      const log = await gateway.database.rows<{ action: string }>(
        `select action from audit_log where action like 'endpoints.%' order by id`,
      );
      assert.equal(log.map(({ action }) => action).slice(-2), [
        'endpoints.releaseKey',
        'endpoints.skipDelivery',
      ]);
    } finally {
      await gateway.close();
      await inbox.close();
    }
  },
);

guide.run();
