// deadline: 420 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { census, missing, numbered } from '../support/census.js';
import { endpoint } from '../support/endpoint.js';
import { kafka } from '../support/kafka.js';
import { kafkaSource, production, subscribed, type Production } from '../support/production.js';
import { sqs } from '../support/sqs.js';
import { until } from '../support/until.js';

const reliability = suite('reliability/production');

const COUNT = 20_000;
const isPoisoned = (n: number) => n % 100 === 50;
const POISONED = COUNT / 100;

/** Five ways to be no ingest message, in turn. */
function poison(n: number): string {
  const ways = ['not json', '{"event_type":"order.created"}', '[1,2]', `{"event_type":7,"data":{"n":${n}}}`, '{"data":{}}'];
  return ways[Math.floor(n / 100) % ways.length] as string;
}

const message = (n: number) => (isPoisoned(n) ? poison(n) : numbered(n));

/** Waits until everything has arrived and is recorded, and checks it. */
async function allAccountedFor(gateway: Production, receiver: Awaited<ReturnType<typeof endpoint>>, secret: string): Promise<void> {
  await receiver.received(COUNT - POISONED, { withinMs: 240_000 });
  await until('every delivery to be recorded', async () => (await census(gateway, [], secret)).deliveries['success'] === COUNT - POISONED, {
    withinMs: 30_000,
  });
  await until('every poisoned message to be in quarantine', async () => (await census(gateway, [], secret)).quarantined === POISONED, {
    withinMs: 30_000,
  });
  const seen = await census(gateway, receiver.requests, secret);
  assert.equal(missing(seen.arrivals, COUNT, isPoisoned), [], 'every message arrived');
  assert.is(receiver.requests.length, COUNT - POISONED, 'each once');
  assert.is(seen.badSignatures, 0);
  assert.is(seen.events, COUNT - POISONED);
  assert.equal(seen.deliveries, { success: COUNT - POISONED });
  assert.is(seen.attempts, COUNT - POISONED);
}

reliability('20,000 messages of a topic, 1 in 100 poisoned, two agents: every one is delivered once or in quarantine', async () => {
  const broker = await kafka();
  const receiver = await endpoint();
  const gateway = await production({ agents: 2 });
  try {
    const { secret } = await subscribed(gateway, receiver.url, ['order.*']);
    const topic = await kafkaSource(gateway, broker);
    await broker.produce(
      topic,
      Array.from({ length: COUNT }, (_, n) => message(n)),
    );
    await allAccountedFor(gateway, receiver, secret);
    const { content } = await gateway.api<{ content: { reason: string }[] }>('GET', '/quarantine?perPage=100');
    assert.ok(
      content.every(({ reason }) => /^The message .+\.$/.test(reason)),
      'each with a sentence',
    );
  } finally {
    await gateway.close();
    await receiver.close();
    await broker.close();
  }
});

reliability('20,000 messages of a queue, 1 in 100 poisoned, two agents: every one is delivered once or in quarantine', async () => {
  const queues = await sqs();
  const receiver = await endpoint();
  const gateway = await production({ agents: 2 });
  try {
    const { secret } = await subscribed(gateway, receiver.url, ['order.*']);
    const queue = queues.queue();
    const pubSub = { type: 'sqs', workers: 2, sqs: queues.connection(queue.name) };
    await gateway.api('POST', '/sources', { name: 'orders', type: 'pub_sub', pub_sub: pubSub });
    await queues.send(
      queue,
      Array.from({ length: COUNT }, (_, n) => message(n)),
    );
    await allAccountedFor(gateway, receiver, secret);
    await until('the queue to be empty', () => {
      const { ready, inFlight } = queues.depth(queue);
      return ready + inFlight === 0;
    });
  } finally {
    await gateway.close();
    await receiver.close();
    await queues.close();
  }
});

reliability.run();
