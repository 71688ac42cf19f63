// deadline: 300 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { census, missing, numbered } from '../support/census.js';
import { endpoint } from '../support/endpoint.js';
import { kafka } from '../support/kafka.js';
import { production, topicSource } from '../support/production.js';
import { own } from '../support/services.js';
import { until } from '../support/until.js';

const outages = suite('reliability/outages');

async function health(port: number): Promise<{ components: { name: string; state: string }[] }> {
  const response = await fetch(`http://127.0.0.1:${port}/healthz?ready`);
  return ((await response.json()) as { data: { components: { name: string; state: string }[] } })
    .data;
}

outages(
  'the broker goes away and returns: the source is read again by itself, and health tells meanwhile',
  async () => {
    const server = await own.kafka();
    const broker = await kafka({ server });
    const receiver = await endpoint();
    const gateway = await production();
    try {
      const { topic, secret } = await topicSource(gateway, broker, receiver.url);
      await broker.produce(
        topic,
        Array.from({ length: 100 }, (_, n) => numbered(n)),
      );
      await receiver.received(100);
      await server.stop();
      const sourceOf = async () =>
        (await health(gateway.agents[0]!.port)).components.find(
          ({ name }) => name === 'source orders',
        );
      await until(
        'health to say that the source cannot be read',
        async () => (await sourceOf())?.state === 'down',
        { withinMs: 60_000 },
      );
      await server.start();
      await until('the source to be read again', async () => (await sourceOf())?.state === 'ok', {
        withinMs: 90_000,
      });
      await broker.produce(
        topic,
        Array.from({ length: 100 }, (_, n) => numbered(100 + n)),
      );
      await until(
        'every delivery to be recorded',
        async () => (await census(gateway, [], secret)).deliveries['success'] === 200,
      );
      const seen = await census(gateway, receiver.requests, secret);
      assert.equal(missing(seen.arrivals, 200), [], 'nothing is lost');
      assert.is(seen.events, 200, 'no second event');
      assert.equal(seen.deliveries, { success: 200 }, 'no row is stuck');
    } finally {
      await gateway.close();
      await receiver.close();
      await broker.close();
      await server.close();
    }
  },
);

outages.run();
