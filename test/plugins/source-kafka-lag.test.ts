import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin, { type Connection } from '@gateway/source-kafka';
import { kafka, randomName } from '../support/kafka.js';
import { together } from '../support/together.js';
import { until } from '../support/until.js';
import { held, reading } from './reading.js';

const lag = suite('plugins/source-kafka-lag');
/** Each on a topic of its own, for brokers are asked from time to time. */
const beside = together(lag);

const broker = await kafka();
lag.after(() => broker.close());

async function fresh(partitions = 1): Promise<Connection & { consumer_group_id: string }> {
  return {
    brokers: [broker.listeners.plaintext],
    topic_name: await broker.topic({ partitions }),
    consumer_group_id: randomName('group'),
  };
}

const inPartition = (partition: number, count: number) => Array.from({ length: count }, (_, n) => ({ partition, value: String(n) }));

beside('a partition that is read to its end has no lag, and neither has one that never had a message', async () => {
  const connection = await fresh(2);
  await broker.produce(connection.topic_name, inPartition(0, 5));
  const run = reading(plugin, connection, { wantsLag: true });
  await until('the lag of both partitions', () => run.lags['0'] === 0 && run.lags['1'] === 0);
  assert.is(run.messages.length, 5);
  await run.stop();
  assert.equal(run.lags, { '0': null, '1': null });
});

beside('the lag of a reader that is held back grows with what comes to the broker, and is gone when it may go on', async () => {
  const connection = await fresh();
  await broker.produce(connection.topic_name, inPartition(0, 10));
  const { handle, settle, waiting } = held();
  const run = reading(plugin, connection, { wantsLag: true, window: 4, handle });
  await until('the lag behind a full window', () => run.lags['0'] === 6);
  await broker.produce(connection.topic_name, inPartition(0, 7));
  await until('the lag to have grown', () => run.lags['0'] === 13);
  await until('the lag to be gone', () => {
    for (const body of waiting()) settle(body, 'accepted');
    return run.lags['0'] === 0;
  });
  await run.stop();
});

beside('a partition that another reader gets is forgotten, and told by that one', async () => {
  const connection = await fresh(2);
  await broker.produce(connection.topic_name, [...inPartition(0, 3), ...inPartition(1, 3)]);
  const first = reading(plugin, connection, { wantsLag: true });
  await until('the lag of both partitions', () => first.lags['0'] === 0 && first.lags['1'] === 0);
  const second = reading(plugin, connection, { wantsLag: true });
  await until('each to have one partition', () => {
    const mine = Object.entries(first.lags).filter(([, messages]) => messages !== null);
    const others = Object.entries(second.lags).filter(([, messages]) => messages !== null);
    return mine.length === 1 && others.length === 1 && mine[0]![0] !== others[0]![0];
  });
  await Promise.all([first.stop(), second.stop()]);
});

beside('a transaction leaves marks behind that nobody is to read, and they are no lag', async () => {
  const connection = await fresh();
  const { topic_name: topic } = connection;
  const producer = broker.client().producer({ transactionalId: randomName('transaction'), maxInFlightRequests: 1, idempotent: true });
  await producer.connect();
  try {
    for (const end of ['commit', 'abort'] as const) {
      const transaction = await producer.transaction();
      await transaction.send({ topic, messages: [{ value: end }] });
      await transaction[end]();
    }
  } finally {
    await producer.disconnect();
  }
  const run = reading(plugin, connection, { wantsLag: true });
  await until('the lag', () => run.lags['0'] === 0);
  assert.equal(run.bodies(), ['commit']);
  await run.stop();
});

lag('no connection is opened for it when nobody wants to know', async () => {
  const sockets = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  const connection = await fresh();
  const before = sockets();
  const unasked = reading(plugin, connection);
  await until('it to read', () => unasked.states.at(-1)?.state === 'reading');
  await broker.produce(connection.topic_name, inPartition(0, 1));
  await until('the message', () => unasked.messages.length === 1);
  const opened = sockets() - before;
  await unasked.stop();
  assert.equal(unasked.lags, {});
  const asked = reading(plugin, connection, { wantsLag: true });
  await until('the lag', () => asked.lags['0'] === 0);
  assert.ok(sockets() - before > opened, `${opened} connections without, ${sockets() - before} with it`);
  await asked.stop();
});

lag.run();
