// deadline: 300 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { census, missing, numbered } from '../support/census.js';
import { endpoint } from '../support/endpoint.js';
import { kafka } from '../support/kafka.js';
import { kafkaSource, production, subscribed } from '../support/production.js';
import { sqs } from '../support/sqs.js';
import { until } from '../support/until.js';

const reliability = suite('reliability/production');

/** The first half goes to a topic, the other to a queue. */
const COUNT = 8_000;
const isPoisoned = (n: number) => n % 100 === 50;
const POISONED = COUNT / 100;

/** Five kinds of invalid ingest messages, in rotation. */
function poison(n: number): string {
  const links = [
    'not json',
    '{"event_type":"order.created"}',
    '[1,2]',
    `{"event_type":7,"data":{"n":${n}}}`,
    '{"data":{}}',
  ];
  return links[Math.floor(n / 100) % links.length] as string;
}

const messages = Array.from({ length: COUNT }, (_, n) => (isPoisoned(n) ? poison(n) : numbered(n)));

reliability(
  'a topic and a queue, 1 message in 100 poisoned, two agents: every one is delivered once or in quarantine',
  async () => {
    const [broker, queues, receiver] = await Promise.all([kafka(), sqs(), endpoint()]);
    const gateway = await production({ agents: 2 });
    try {
      const { secret } = await subscribed(gateway, receiver.url, ['order.*']);
      const topic = await kafkaSource(gateway, broker);
      const queue = queues.queue();
      const pubSub = { type: 'sqs', workers: 2, sqs: queues.connection(queue.name) };
      await gateway.api('POST', '/sources', {
        name: 'orders of the queue',
        type: 'pub_sub',
        pub_sub: pubSub,
      });
      await Promise.all([
        broker.produce(topic, messages.slice(0, COUNT / 2)),
        queues.send(queue, messages.slice(COUNT / 2)),
      ]);

      await receiver.received(COUNT - POISONED, { withinMs: 240_000 });
      const stands = () => census(gateway, [], secret);
      await until(
        'every delivery to be recorded',
        async () => (await stands()).deliveries['success'] === COUNT - POISONED,
      );
      await until(
        'every poisoned message to be in quarantine',
        async () => (await stands()).quarantined === POISONED,
      );
      await until('the queue to be empty', () => {
        const { ready, inFlight } = queues.depth(queue);
        return ready + inFlight === 0;
      });
      const seen = await census(gateway, receiver.requests, secret);
      assert.equal(missing(seen.arrivals, COUNT, isPoisoned), [], 'every message arrived');
      assert.is(receiver.requests.length, COUNT - POISONED, 'each once');
      assert.is(seen.badSignatures, 0);
      assert.is(seen.events, COUNT - POISONED);
      assert.equal(seen.deliveries, { success: COUNT - POISONED });
      assert.is(seen.attempts, COUNT - POISONED);
      const { content } = await gateway.api<{ content: { reason: string }[] }>(
        'GET',
        '/quarantine?perPage=100',
      );
      assert.ok(
        content.length === POISONED &&
          content.every(({ reason }) => /^The message .+\.$/.test(reason)),
        'each with a sentence',
      );
    } finally {
      await gateway.close();
      await receiver.close();
      await queues.close();
      await broker.close();
    }
  },
);

reliability.run();
