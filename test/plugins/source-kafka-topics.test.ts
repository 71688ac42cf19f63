import net from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin, { type Connection } from '@gateway/source-kafka';
import { matching } from '#source-kafka/topics';
import { kafka, randomName, readdressed } from '../support/kafka.js';
import { together } from '../support/together.js';
import { until } from '../support/until.js';
import { failure, reading } from './reading.js';

const source = suite('plugins/source-kafka-topics');
const beside = together(source);
const broker = await kafka();
source.after(() => broker.close());

const matched = (topic_pattern: string, ...names: string[]) =>
  matching(names, { brokers: [], topic_pattern });

source('a pattern matches whole names, and no internal topic', () => {
  const names = ['orders.eu', 'orders.us', 'orders', 'old.orders.eu', '__consumer_offsets'];
  assert.equal(matched('orders\\..+', ...names), ['orders.eu', 'orders.us']);
  assert.equal(matched('.*', ...names).includes('__consumer_offsets'), false);
});

source('a hostile pattern takes linear time', () => {
  const beganMs = performance.now();
  assert.equal(matched('(a+)+(a|a)*(a*)*b', ...Array<string>(2_000).fill('a'.repeat(240))), []);
  assert.ok(performance.now() - beganMs < 2_000);
});

source('a pattern that cannot be read, or matches too many topics, is refused', async () => {
  const refused = (work: () => unknown) => failure(Promise.resolve().then(work));
  const { message, fix } = await refused(() => matched('orders(?=x)', 'a'));
  assert.match(message, /^topic_pattern is not a regular expression of RE2: .+\.$/);
  assert.match(fix, /lookaround/);
  const names = Array.from({ length: 501 }, (_, at) => `t${at}`);
  assert.match(
    (await refused(() => matched('t.*', ...names))).message,
    /^501 topics match "t\.\*"/,
  );
});

beside('topics that match are read, also one that is created later', async () => {
  const prefix = (await broker.topic({ partitions: 2 })).replace('topic-', '');
  const connection = {
    brokers: [broker.listeners.plaintext],
    topic_pattern: `(topic|later)-${prefix}`,
    consumer_group_id: randomName('group'),
  };
  await plugin.check(connection, { signal: new AbortController().signal, settings: {} });
  await broker.produce(`topic-${prefix}`, [{ partition: 1, value: 'first' }]);
  const recorded = new Map<string, string>();
  const run = reading(plugin, connection, { recorded, wantsLag: true });
  await until('the message', () => run.messages.length === 1);
  assert.is(run.messages[0]?.coordinates, `topic-${prefix}/1/0`);
  const admin = broker.client().admin();
  await admin.connect();
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic: `later-${prefix}` }] });
  await admin.disconnect();
  await broker.produce(`later-${prefix}`, ['second']);
  await until('the message of the new topic', () => run.messages.length === 2);
  assert.equal(run.bodies(), ['first', 'second'], 'nothing is read twice');
  await until('its lag', () => run.lags[`later-${prefix}/0`] === 0);
  await run.stop();
  assert.equal(await broker.committed(connection.consumer_group_id, `later-${prefix}`), [1]);
});

beside('a pattern that matches nothing is told by the check, and waits', async () => {
  const connection: Connection = {
    brokers: [broker.listeners.plaintext],
    topic_pattern: randomName('none'),
  };
  const { message } = await failure(
    plugin.check(connection, { signal: new AbortController().signal, settings: {} }),
  );
  assert.match(message, /^There is no topic that matches "none-/);
  const run = reading(plugin, connection);
  await until('it to be told', () => run.states.at(-1)?.state === 'reading');
  assert.match(run.states.at(-1)?.reason ?? '', /There is no topic yet/);
  await run.stop();
});

beside('the rack goes to the brokers with each fetch', async () => {
  const [, port] = broker.listeners.plaintext.split(':').map(Number);
  const sent: Buffer[] = [];
  const proxy = net.createServer((client) => {
    const upstream = net.connect({ host: '127.0.0.1', port: port! });
    const own = (proxy.address() as net.AddressInfo).port;
    client.on('data', (bytes) => {
      sent.push(bytes);
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => client.write(readdressed(bytes, port!, own)));
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const connection = {
    brokers: [`127.0.0.1:${(proxy.address() as net.AddressInfo).port}`],
    topic_name: await broker.topic(),
    consumer_group_id: randomName('group'),
    client_rack: 'zone-of-the-agents',
  };
  await broker.produce(connection.topic_name, ['hello']);
  const run = reading(plugin, connection);
  await until('the message', () => run.messages.length === 1);
  await run.stop();
  proxy.close();
  const FETCH = 1;
  const fetches = sent.filter((bytes) => bytes.readInt16BE(4) === FETCH);
  assert.ok(fetches.length > 0);
  for (const fetch of fetches) {
    assert.ok(fetch.readInt16BE(6) >= 11, 'a version with the rack');
    assert.ok(fetch.includes('zone-of-the-agents'));
  }
});

source.run();
