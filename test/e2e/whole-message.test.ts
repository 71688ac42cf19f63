// deadline: 180 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { kafka } from '../support/kafka.js';
import { kafkaSource, production, subscribed, type Created } from '../support/production.js';

const whole = suite('e2e/whole-message');

const OF_SOURCE = `function transform(payload, message) {
  const { bytes, timestamp, ...rest } = message;
  return { event_type: message.headers['x-type'], data: { ...payload, rest, size: bytes.length } };
}`;
const OF_SUBSCRIPTION = `function transform(payload, { key, offset, headers }) {
  return { ...payload, key, offset, type: headers['x-type'] };
}`;

whole(
  'functions and filters get the whole message, and headers of an endpoint have parts of it',
  async () => {
    const receiver = await endpoint();
    const gateway = await production({ agents: 1 });
    const topics = await kafka();
    try {
      const { uid } = await subscribed(gateway, receiver.url);
      await gateway.api('PUT', `/endpoints/${uid}`, {
        headers: [
          { name: 'x-key', value: 'key {{ message.key }} of {{message.topic}}' },
          { name: 'x-none', value: '{{ message.headers.x-other }}' },
        ],
      });
      const { content } = await gateway.api<{ content: Created[] }>(
        'GET',
        `/subscriptions?endpointId=${uid}`,
      );
      await gateway.api('PUT', `/subscriptions/${content[0]!.uid}`, {
        function: OF_SUBSCRIPTION,
        filter_config: { filter: { message: { key: 'o-1', offset: { $gte: 1 } } } },
      });
      const topic = await kafkaSource(gateway, topics, 1, {
        body_function: OF_SOURCE,
        forward_headers: ['X-Type'],
      });
      const value = '{"n":1}';
      await topics.produce(topic, [
        { key: 'o-2', value, headers: { 'X-Type': 'order.paid' } },
        { key: 'o-1', value, headers: { 'X-Type': 'order.paid', authorization: 'secret' } },
      ]);
      const [request] = await receiver.received(1);
      assert.is(request!.headers['x-key'], `key o-1 of ${topic}`);
      assert.is(request!.headers['x-none'], undefined);
      assert.equal(JSON.parse(request!.body.toString()), {
        n: 1,
        rest: {
          key: 'o-1',
          topic,
          partition: 0,
          offset: 1,
          headers: { 'x-type': 'order.paid' },
        },
        size: value.length,
        key: 'o-1',
        offset: 1,
        type: 'order.paid',
      });
    } finally {
      await gateway.close();
      await receiver.close();
      await topics.close();
    }
  },
);

whole.run();
