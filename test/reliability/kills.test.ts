// deadline: 420 s
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { census, missing, numbered } from '../support/census.js';
import { endpoint } from '../support/endpoint.js';
import { kafka } from '../support/kafka.js';
import { production, topicSource } from '../support/production.js';
import { until } from '../support/until.js';

const kills = suite('reliability/kills');

kills('five kills of agents at random moments lose nothing, make no second event and leave no row stuck', async () => {
  const COUNT = 20_000;
  const broker = await kafka();
  const receiver = await endpoint();
  const gateway = await production({ agents: 2 });
  try {
    const { topic, secret } = await topicSource(gateway, broker, receiver.url, 2);
    // Slow enough that the kills fall into the middle.
    const producing = (async () => {
      for (let from = 0; from < COUNT; from += 500) {
        await broker.produce(
          topic,
          Array.from({ length: 500 }, (_, k) => numbered(from + k)),
        );
        await sleep(300);
      }
    })();
    for (let kill = 0; kill < 5; kill++) {
      await sleep(500 + Math.random() * 2_500);
      const [victim] = gateway.agents.splice(Math.floor(Math.random() * gateway.agents.length), 1);
      await victim!.process.kill();
      await gateway.startAgent();
    }
    await producing;
    await until(
      'every message to have arrived',
      () => new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size >= COUNT,
      { withinMs: 120_000 },
    );
    await until('no delivery to be open', async () => (await census(gateway, [], secret)).deliveries['success'] === COUNT, {
      withinMs: 60_000,
    });

    const seen = await census(gateway, receiver.requests, secret);
    assert.equal(missing(seen.arrivals, COUNT), [], 'nothing is lost');
    assert.is(seen.events, COUNT, 'no second event');
    assert.equal(seen.deliveries, { success: COUNT }, 'no row is stuck');
    assert.is(seen.badSignatures, 0);
    const second = receiver.requests.length - COUNT;
    assert.ok(second <= seen.recovered, `${second} arrived a second time, ${seen.recovered} deliveries are marked as recovered`);
    console.log(`    five kills: ${second} of ${COUNT} arrived a second time, ${seen.recovered} deliveries were recovered`);
  } finally {
    await gateway.close();
    await receiver.close();
    await broker.close();
  }
});

kills('the partitions and deliveries of a killed agent move again long before it is taken for dead without KV', async () => {
  const broker = await kafka();
  const receiver = await endpoint();
  const gateway = await production({ agents: 2 });
  try {
    const { topic } = await topicSource(gateway, broker, receiver.url, 4);
    const partitions = [0, 1, 2, 3];
    const produce = (from: number) =>
      broker.produce(
        topic,
        partitions.map((partition) => ({ partition, value: numbered(from + partition) })),
      );
    await produce(0);
    await receiver.received(4);
    // Requests that hang are deliveries in flight when their agent dies.
    receiver.answer({ hang: true });
    const inFlight = () =>
      gateway.database.rows<{ id: string; agent: string }>(
        `select d.id, a.name as agent from event_deliveries d join agents a on a.id = d.claimed_by where d.status = 'processing'`,
      );
    let last = 0;
    await until('both agents to have deliveries in flight', async () => {
      await produce((last += 10));
      await sleep(200);
      return new Set((await inFlight()).map(({ agent }) => agent)).size === 2;
    });
    const [victim] = gateway.agents.splice(0, 1);
    const left = (await inFlight()).filter(({ agent }) => agent.endsWith(`:${victim!.process.pid}`)).map(({ id }) => id);
    assert.ok(left.length > 0, 'the victim has nothing in flight');
    await victim!.process.kill();
    const killedAt = Date.now();
    receiver.answer({});
    await produce((last += 10));
    const numbersOf = () =>
      receiver.requests
        .filter(({ receivedAt }) => receivedAt >= killedAt)
        .map(({ body }) => (JSON.parse(body.toString()) as { n: number }).n);
    await until('all partitions to move', () => partitions.every((n) => numbersOf().includes(last + n)));
    await until('the deliveries of the killed agent to have arrived', async () => {
      const [row] = await gateway.database.rows<{ n: number }>(
        `select count(*)::int as n from event_deliveries where id = any ($1::uuid[]) and status = 'success'`,
        [left],
      );
      return row?.n === left.length;
    });
    const seconds = (Date.now() - killedAt) / 1000;
    console.log(`    moved again after ${seconds.toFixed(1)} s`);
    assert.ok(seconds < 45, `they moved after ${seconds} s; 12 are promised, and without KV it is 60`);
  } finally {
    await gateway.close();
    await receiver.close();
    await broker.close();
  }
});

kills('a clean stop leaves the consumer group, so that the next start delivers at once and not when a session has expired', async () => {
  const broker = await kafka();
  const receiver = await endpoint();
  const gateway = await production({ agents: 1 });
  try {
    const { topic } = await topicSource(gateway, broker, receiver.url, 2);
    await broker.produce(topic, [numbered(1)]);
    await receiver.received(1);
    type Sources = { content: { pub_sub: { kafka: { consumer_group_id: string } } }[] };
    const group = (await gateway.api<Sources>('GET', '/sources')).content[0]!.pub_sub.kafka.consumer_group_id;
    assert.is(await broker.members(group), 1);
    const [first] = gateway.agents.splice(0, 1);
    const { code } = await first!.process.terminate();
    assert.is(code, 0);
    assert.is(await broker.members(group), 0);
    await broker.produce(topic, [numbered(2)]);
    await gateway.startAgent();
    const readyAt = Date.now();
    await receiver.received(2);
    console.log(`    delivered ${((receiver.requests[1]!.receivedAt - readyAt) / 1000).toFixed(2)} s after the agent was ready`);
  } finally {
    await gateway.close();
    await receiver.close();
    await broker.close();
  }
});

kills.run();
