// deadline: 300 s
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { kafka, randomName } from '../support/kafka.js';
import { production, subscribed } from '../support/production.js';
import { sqs } from '../support/sqs.js';
import { until } from '../support/until.js';

const delivers = suite('e2e/delivers');

interface Delivery {
  uid: string;
  status: string;
  event_id: string;
}

delivers(
  'messages of real Kafka topics become signed requests with the exact bytes of their data, and recorded attempts',
  async () => {
    const broker = await kafka();
    const receiver = await endpoint();
    const gateway = await production();
    try {
      const { secret } = await subscribed(gateway, receiver.url);
      const topic = await broker.topic({ partitions: 2 });
      const source = await gateway.api<{ uid: string }>('POST', '/sources', {
        name: 'orders',
        type: 'pub_sub',
        pub_sub: {
          type: 'kafka',
          workers: 1,
          kafka: { brokers: [broker.listeners.plaintext], topic_name: topic },
        },
        forward_headers: ['Tenant'],
      });
      const internal = {
        authorization: 'Bearer of-the-producer',
        cookie: 'session=1',
        baggage: 'user=7',
        __TypeId__: 'com.example.Order',
        'kafka_dlt-exception-stacktrace': 'java.lang.NullPointerException',
      };
      const data = '{"id":9007199254740993,"price":1.10, "z":[1, 2],"a":"\\u00e9"}';
      await broker.produce(topic, [
        {
          value: `{"event_type":"order.created","data":${data},"custom_headers":{"X-Shop":"7","Host":"evil.example","Webhook-Signature":"v1,forged"}}`,
          headers: {
            traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
            tenant: 'a',
            ...internal,
          },
        },
      ]);
      const [request] = await receiver.received(1);
      assert.is(request?.body.toString(), data);
      assert.is(request?.headers['x-shop'], '7');
      assert.is(request?.headers['tenant'], 'a');
      for (const name of Object.keys(internal))
        assert.is(request?.headers[name.toLowerCase()], undefined, name);
      assert.is(
        request?.headers['traceparent'],
        '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      );
      assert.not.throws(() => new Webhook(secret).verify(data, { ...request!.headers }));

      const delivery = await until('the delivery to be recorded', async () => {
        const { content } = await gateway.api<{ content: Delivery[] }>('GET', '/eventdeliveries');
        return content.find(({ status }) => status === 'success');
      });
      assert.is(delivery.uid, request?.headers['webhook-id']);
      assert.equal(
        (await gateway.api<{ notes: string[] }>('GET', `/events/${delivery.event_id}`)).notes,
        [
          'the header "Host" was omitted: the connection sets it',
          'the header "Webhook-Signature" was omitted: the gateway sets it',
        ],
      );
      const attempts = await gateway.api<
        { http_status: number }[] | { content: { http_status: number }[] }
      >('GET', `/eventdeliveries/${delivery.uid}/deliveryattempts`);
      assert.is((Array.isArray(attempts) ? attempts : attempts.content).length, 1);
      const group = `gateway-${source.uid}`;
      await until('the acknowledgement in the group of the source', async () =>
        (await broker.committed(group, topic)).includes(1),
      );

      // A source with a function accepts binary data.
      const binary = await broker.topic();
      await gateway.api('POST', '/sources', {
        name: 'binary',
        type: 'pub_sub',
        pub_sub: {
          type: 'kafka',
          workers: 1,
          kafka: { brokers: [broker.listeners.plaintext], topic_name: binary },
        },
        body_function: `function transform(payload, message) {
        return { event_type: 'order.created', data: { hex: Array.from(message.bytes, (byte) => byte.toString(16).padStart(2, '0')).join('') } };
      }`,
      });
      await broker.produce(binary, [{ value: Buffer.from('00ff1ec3281f', 'hex') }]);
      assert.is((await receiver.received(2))[1]?.body.toString(), '{"hex":"00ff1ec3281f"}');
    } finally {
      await gateway.close();
      await receiver.close();
      await broker.close();
    }
  },
);

delivers('a topic over SASL/SCRAM and one over TLS are read like any other', async () => {
  const broker = await kafka();
  const receiver = await endpoint();
  const gateway = await production();
  try {
    await subscribed(gateway, receiver.url);
    const { username, password } = broker.users.scram;
    const ways = {
      'SASL/SCRAM': {
        brokers: [broker.listeners.saslPlaintext],
        auth: { type: 'scram', hash: 'SHA512', username, password, tls: false },
      },
      TLS: { brokers: [broker.listeners.ssl], auth: { tls: true, ca: broker.ca } },
      'SASL/SCRAM over TLS': {
        brokers: [broker.listeners.saslSsl],
        auth: { type: 'scram', hash: 'SHA256', username, password, tls: true, ca: broker.ca },
      },
    };
    for (const [name, connection] of Object.entries(ways)) {
      const topic = await broker.topic();
      const pubSub = {
        type: 'kafka',
        kafka: { ...connection, topic_name: topic, consumer_group_id: randomName('group') },
      };
      await gateway.api('POST', '/sources', { name, type: 'pub_sub', pub_sub: pubSub });
      await broker.produce(topic, [
        JSON.stringify({ event_type: 'order.created', data: { name } }),
      ]);
    }
    const requests = await receiver.received(3);
    assert.equal(
      requests.map(({ body }) => (JSON.parse(body.toString()) as { name: string }).name).sort(),
      Object.keys(ways).sort(),
    );
  } finally {
    await gateway.close();
    await receiver.close();
    await broker.close();
  }
});

delivers(
  'an event that is created over the API is routed through the queues and delivered, by endpoint, by owner and by subscription',
  async () => {
    const receiver = await endpoint();
    const gateway = await production({ agents: 2 });
    try {
      const { uid } = await subscribed(gateway, receiver.url);
      const owned = await gateway.api('POST', '/endpoints', {
        name: 'owned',
        url: `${receiver.url}/owned`,
        owner_id: 'shop-7',
      });
      await gateway.api('POST', '/events', {
        event_type: 'a',
        endpoint_id: uid,
        data: { way: 'endpoint' },
      });
      await gateway.api('POST', '/events/fanout', {
        event_type: 'a',
        owner_id: 'shop-7',
        data: { way: 'owner' },
      });
      await gateway.api('POST', '/events', { event_type: 'a', data: { way: 'subscription' } });
      await gateway.api('POST', '/events/broadcast', {
        event_type: 'a',
        data: { way: 'broadcast' },
      });
      const requests = await receiver.received(5);
      const seen = requests
        .map(({ url, body }) => `${(JSON.parse(body.toString()) as { way: string }).way} ${url}`)
        .sort();
      assert.equal(seen, [
        'broadcast /',
        'broadcast /owned',
        'endpoint /',
        'owner /owned',
        'subscription /',
      ]);
      assert.ok(owned.uid);
    } finally {
      await gateway.close();
      await receiver.close();
    }
  },
);

delivers(
  'a message of an SQS queue passes the function of its source, and of its attributes only those named leave the house',
  async () => {
    const queues = await sqs();
    const receiver = await endpoint();
    const gateway = await production();
    try {
      await subscribed(gateway, receiver.url);
      const queue = queues.queue();
      await gateway.api('POST', '/sources', {
        name: 'shop',
        type: 'pub_sub',
        pub_sub: { type: 'sqs', workers: 1, sqs: queues.connection(queue.name) },
        body_function:
          'function transform(payload) { return { event_type: "shop." + payload.kind, data: { number: payload.n } }; }',
        forward_headers: ['Tenant'],
      });
      const internal = {
        authorization: 'Bearer of-the-producer',
        cookie: 'session=1',
        baggage: 'a=7',
      };
      const body = JSON.stringify({ kind: 'sold', n: 7 });
      await queues.send(queue, [{ body, attributes: { tenant: 'a', ...internal } }]);
      const [request] = await receiver.received(1);
      assert.is(request?.body.toString(), '{"number":7}');
      assert.is(request?.headers['tenant'], 'a');
      for (const name of Object.keys(internal)) assert.is(request?.headers[name], undefined, name);
      const events = await gateway.api<{ content: { event_type: string; status: string }[] }>(
        'GET',
        '/events',
      );
      assert.equal(
        events.content.map(({ event_type, status }) => ({ event_type, status })),
        [{ event_type: 'shop.sold', status: 'processed' }],
      );
    } finally {
      await gateway.close();
      await receiver.close();
      await queues.close();
    }
  },
);

delivers.run();
