// deadline: 420 s
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { census, missing, numbered } from '../support/census.js';
import { endpoint } from '../support/endpoint.js';
import { kafka, type KafkaBroker } from '../support/kafka.js';
import { production, topicSource, type Production } from '../support/production.js';
import { own } from '../support/services.js';
import { until } from '../support/until.js';

const outages = suite('reliability/outages');

/** Produces `count` messages in ten steps while `disturb` runs. */
async function whileProducing(broker: KafkaBroker, topic: string, count: number, disturb: () => Promise<void>): Promise<void> {
  const producing = (async () => {
    for (let step = 0; step < 10; step++) {
      const from = (count / 10) * step;
      await broker.produce(
        topic,
        Array.from({ length: count / 10 }, (_, k) => numbered(from + k)),
      );
      await sleep(300);
    }
  })();
  await disturb();
  await producing;
}

async function allDelivered(gateway: Production, requests: Parameters<typeof census>[1], secret: string, count: number): Promise<void> {
  await until('every delivery to be recorded', async () => (await census(gateway, [], secret)).deliveries['success'] === count, {
    withinMs: 120_000,
  });
  const seen = await census(gateway, requests, secret);
  assert.equal(missing(seen.arrivals, count), [], 'nothing is lost');
  assert.is(seen.events, count, 'no second event');
  assert.equal(seen.deliveries, { success: count }, 'no row is stuck');
}

async function health(port: number): Promise<{ state: string; components: { name: string; state: string; reason?: string }[] }> {
  const response = await fetch(`http://127.0.0.1:${port}/healthz?ready`);
  return ((await response.json()) as { data: { state: string; components: { name: string; state: string; reason?: string }[] } }).data;
}

outages(
  'Postgres crashes and returns: nothing is acknowledged meanwhile, health says so, and everything is delivered afterwards',
  async () => {
    const postgres = await own.postgres();
    const broker = await kafka();
    const receiver = await endpoint();
    const gateway = await production({ postgres });
    try {
      const { topic, secret } = await topicSource(gateway, broker, receiver.url);
      await whileProducing(broker, topic, 3_000, async () => {
        await receiver.received(200);
        await postgres.crash();
        await until('health to say that Postgres is away', async () => {
          const { components } = await health(gateway.agents[0]!.port);
          return components.some(
            ({ name, state, reason }) => name === 'postgres' && state === 'down' && /database\.host/.test(reason ?? ''),
          );
        });
        await sleep(2_000);
        await postgres.start();
      });
      await allDelivered(gateway, receiver.requests, secret, 3_000);
      await until('health to be well again', async () => (await health(gateway.agents[0]!.port)).state === 'ok');
    } finally {
      await gateway.close();
      await receiver.close();
      await broker.close();
      await postgres.close();
    }
  },
);

outages('Redis is emptied and then goes away: nothing is lost, even of the events that were in its queues', async () => {
  const server = await own.redis();
  const broker = await kafka();
  const receiver = await endpoint();
  // Every event takes both queues, so that there is something to lose.
  const gateway = await production({ redis: server, settings: { ingest: { inline_routing: false } } });
  try {
    const { topic, secret } = await topicSource(gateway, broker, receiver.url);
    await whileProducing(broker, topic, 3_000, async () => {
      await receiver.received(100);
      for (let k = 0; k < 5; k++) {
        await gateway.kv.client.flushall();
        await sleep(200);
      }
      await server.crash();
      await sleep(1_000);
    });
    await allDelivered(gateway, receiver.requests, secret, 3_000);
    const { components } = await health(gateway.agents[0]!.port);
    const kv = components.find(({ name }) => name === 'kv');
    assert.is(kv?.state, 'degraded', JSON.stringify(components));
    assert.match(kv?.reason ?? '', /^Redis at 127\.0\.0\.1:\d+ cannot be reached: /);
    await server.start();
    await until('health to be well again', async () => (await health(gateway.agents[0]!.port)).state === 'ok', { withinMs: 60_000 });
  } finally {
    await gateway.close();
    await receiver.close();
    await broker.close();
    await server.close();
  }
});

outages('the broker goes away and returns: the source is read again by itself, and health tells meanwhile', async () => {
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
    const sourceOf = async () => (await health(gateway.agents[0]!.port)).components.find(({ name }) => name === 'source orders');
    await until('health to say that the source cannot be read', async () => (await sourceOf())?.state === 'down', { withinMs: 60_000 });
    await server.start();
    await until('the source to be read again', async () => (await sourceOf())?.state === 'ok', { withinMs: 90_000 });
    await broker.produce(
      topic,
      Array.from({ length: 100 }, (_, n) => numbered(100 + n)),
    );
    await allDelivered(gateway, receiver.requests, secret, 200);
  } finally {
    await gateway.close();
    await receiver.close();
    await broker.close();
    await server.close();
  }
});

outages.run();
