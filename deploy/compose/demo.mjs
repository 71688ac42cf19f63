// Creates a project whose endpoint is this process and whose source is the topic "orders", and sends
// one message. It ends when the request has arrived.
import http from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout } from 'node:timers/promises';

const { Kafka } = createRequire('/usr/lib/gateway/')('kafkajs');

const arrived = new Promise((resolve) => {
  const inbox = http.createServer((request, response) => {
    let body = '';
    request.on('data', (bytes) => (body += bytes));
    request.on('end', () => {
      response.end();
      resolve({ ...request.headers, body });
    });
  });
  inbox.listen(8080);
});

async function post(path, body) {
  const response = await fetch(`http://server:5005/api/v1/projects${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${process.env.GATEWAY_API_KEY}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  const { data, message } = await response.json();
  if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${message}`);
  return data.uid;
}

const kafka = new Kafka({ brokers: ['kafka:9092'] });
const admin = kafka.admin();
await admin.connect();
await admin.createTopics({ topics: [{ topic: 'orders', numPartitions: 2 }] });

const project = await post('', { name: `demo ${new Date().toISOString()}` });
// A new broker makes its topic of offsets for the first group, which a source does not wait for.
const offsets = () => admin.fetchOffsets({ groupId: project, topics: ['orders'] });
while (!(await offsets().catch(() => false))) await setTimeout(500);
await admin.disconnect();
const endpoint = await post(`/${project}/endpoints`, {
  name: 'this container',
  url: `http://${process.env.DEMO_ADDRESS}:8080/`,
});
await post(`/${project}/subscriptions`, {
  name: 'everything',
  endpoint_id: endpoint,
  filter_config: { event_types: ['*'] },
});
await post(`/${project}/sources`, {
  name: 'orders',
  type: 'pub_sub',
  pub_sub: {
    type: 'kafka',
    workers: 1,
    kafka: { brokers: ['kafka:9092'], topic_name: 'orders', consumer_group_id: project },
  },
});

const producer = kafka.producer();
await producer.connect();
await producer.send({
  topic: 'orders',
  messages: [{ value: '{"event_type":"order.created","data":{"id":"A-1001"}}' }],
});
await producer.disconnect();
console.log('delivered:', await arrived);
process.exit();
