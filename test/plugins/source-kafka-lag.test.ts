import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin, { type Connection } from '@gateway/source-kafka';
import { kafka, randomName } from '../support/kafka.js';
import { together } from '../support/together.js';
import { until } from '../support/until.js';
import { held, reading } from './reading.js';

const lag = suite('plugins/source-kafka-lag');
/** Tests on separate topics, which wait for periodic requests to the brokers. */
const beside = together(lag);

const broker = await kafka();
lag.after(() => broker.close());

async function fresh(
  partitions = 1,
): Promise<Connection & { topic_name: string; consumer_group_id: string }> {
  return {
    brokers: [broker.listeners.plaintext],
    topic_name: await broker.topic({ partitions }),
    consumer_group_id: randomName('group'),
  };
}

const inPartition = (partition: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ partition, value: String(n) }));

beside(
  'a partition that is read to its end has no lag, and neither has one that never had a message',
  async () => {
    const connection = await fresh(2);
    await broker.produce(connection.topic_name, inPartition(0, 5));
    const run = reading(plugin, connection, { wantsLag: true });
    await until('the lag of both partitions', () => run.lags['0'] === 0 && run.lags['1'] === 0);
    assert.is(run.messages.length, 5);
    await run.stop();
  },
);

beside('lag is what is not committed, and is gone when that is settled', async () => {
  const connection = await fresh();
  await broker.produce(connection.topic_name, inPartition(0, 10));
  const { handle, settle, waiting } = held();
  const run = reading(plugin, connection, { wantsLag: true, window: 4, handle });
  await until('the lag behind a full window', () => run.lags['0'] === 10);
  await broker.produce(connection.topic_name, inPartition(0, 7));
  await until('the lag to have grown', () => run.lags['0'] === 17);
  await until('the lag to be gone', () => {
    for (const body of waiting()) settle(body, 'accepted');
    return run.lags['0'] === 0;
  });
  await run.stop();
});

beside(
  'a source that stands still has a lag, and a sentence about the partitions that nobody reads',
  async () => {
    const connection = await fresh(2);
    await broker.produce(connection.topic_name, [...inPartition(0, 3), ...inPartition(1, 4)]);
    const lags: Record<string, number | null> = {};
    const places: Record<string, unknown> = {};
    let advised: string | null = null;
    const abort = new AbortController();
    const watched = plugin.watch!(connection, {
      settings: {},
      sourceId: 'source-1',
      signal: abort.signal,
      clientId: randomName('client'),
      log: { debug() {}, info() {}, warn() {}, error() {} },
      lag: (partition, messages, offsets) => {
        lags[partition] = messages;
        places[partition] = offsets;
      },
      advise: (advice) => void (advised = advice),
    });
    await until('the lag of both', () => lags['0'] === 3 && lags['1'] === 4);
    assert.equal(places, { 0: { position: '0', end: '3' }, 1: { position: '0', end: '4' } });
    await until('the sentence', () =>
      /No member of the consumer group "group-\w+" reads partition 0, 1 of the topic/.test(
        advised ?? '',
      ),
    );
    const run = reading(plugin, connection);
    await until(
      'the sentence to be gone, and the lag',
      () => advised === null && lags['0'] === 0 && lags['1'] === 0,
    );
    await run.stop();
    abort.abort();
    await watched;
  },
);

beside(
  'a topic that grows is read within 15 seconds from the first message of its new partitions, and they have a lag at once',
  async () => {
    const connection = await fresh();
    const { topic_name: topic } = connection;
    const run = reading(plugin, connection, { wantsLag: true });
    await until('it to read', () => run.lags['0'] === 0 && run.states.at(-1)?.state === 'reading');
    const grownAt = Date.now();
    await broker.grow(topic, 3);
    const producing = broker.client().producer();
    await producing.connect();
    await producing.send({ topic, messages: [...inPartition(1, 2), ...inPartition(2, 2)] });
    await producing.disconnect();
    // Usually five seconds; a machine that runs other tests can take longer than the guaranteed
    // fifteen.
    await until('the messages of the new partitions', () => run.messages.length === 4, {
      withinMs: 30_000,
    });
    console.log(`read ${Date.now() - grownAt} ms after the topic had grown`);
    await until('their lag', () => run.lags['1'] === 0 && run.lags['2'] === 0);
    assert.is(run.advice(), null);
    await run.stop();
  },
);

beside(
  'a transaction leaves marks behind that nobody is to read, and they are no lag',
  async () => {
    const connection = await fresh();
    const { topic_name: topic } = connection;
    const producer = broker.client().producer({
      transactionalId: randomName('transaction'),
      maxInFlightRequests: 1,
      idempotent: true,
    });
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
  },
);

beside(
  'more workers than partitions are told by the connection test and in health, until they are no more',
  async () => {
    const connection = await fresh(2);
    const { topic_name: topic } = connection;
    const signal = new AbortController().signal;
    const [of, fix] = [`but the topic "${topic}" has 2 partitions`, 'give the topic 5 partitions.'];
    const advice = await plugin.check(connection, { signal, settings: {}, workers: 5 });
    assert.equal(advice, {
      message: `The source asks for 5 workers, ${of}: 3 of them are idle.`,
      fix: `Lower workers to 2, or ${fix}`,
    });
    for (const workers of [undefined, 1, 2]) {
      assert.is(
        await plugin.check(connection, { signal, settings: {}, ...(workers && { workers }) }),
        undefined,
      );
    }
    const run = reading(plugin, connection, { wantsLag: true, workers: 3 });
    await until('the advice', () => run.advice() !== null);
    assert.is(
      run.advice(),
      `The source asks for 3 workers, ${of}: 1 of them is idle. Lower workers to 2, or give the topic 3 partitions.`,
    );
    await broker.grow(topic, 3);
    await until('the advice to be gone', () => run.advice() === null);
    await run.stop();
  },
);

lag(
  'records that the broker deletes before they are read are counted, and nothing else is',
  async () => {
    const connection = {
      brokers: [broker.listeners.plaintext],
      topic_name: await broker.topic({ partitions: 2 }),
      consumer_group_id: randomName('group'),
    };
    const trim = (offset: number) => broker.trim(connection.topic_name, 0, offset);
    const produce = (values: string[]) =>
      broker.produce(
        connection.topic_name,
        values.map((value) => ({ partition: 0, value })),
      );
    await produce(['0', '1', '2']);
    await trim(2);
    const first = reading(plugin, connection);
    await until('the oldest record', () => first.messages.length === 1);
    await first.stop();
    assert.equal(
      [first.bodies(), first.lost],
      [['2'], []],
      'a first start behind the beginning loses nothing',
    );

    await produce(['3', '4', '5', '6']);
    await trim(6);
    const second = reading(plugin, connection);
    await until('what is left', () => second.bodies().includes('6') && second.lost.length > 0);
    await second.stop();
    assert.equal([second.bodies(), second.lost], [['6'], [['0', 3]]]);

    await produce(['7', '8']);
    const third = reading(plugin, connection);
    await until('the rest', () => third.messages.length === 2);
    await third.stop();
    assert.equal(third.lost, []);
  },
);

lag.run();
