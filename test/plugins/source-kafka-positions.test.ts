import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { PartitionMove, SeekTarget } from '@gateway/plugin';
import plugin, { type Connection } from '@gateway/source-kafka';
import { kafka, randomName } from '../support/kafka.js';
import { together } from '../support/together.js';
import { until } from '../support/until.js';
import { failure, reading } from './reading.js';

const source = suite('plugins/source-kafka-positions');
const beside = together(source);
const broker = await kafka();
source.after(() => broker.close());

const DAY_MS = 86_400_000;

type Own = Connection & { topic_name: string; consumer_group_id: string };

async function fresh(partitions = 1, more: Partial<Connection> = {}): Promise<Own> {
  return {
    brokers: [broker.listeners.plaintext],
    topic_name: await broker.topic({ partitions }),
    consumer_group_id: randomName('group'),
    ...more,
  };
}

/** Reads until the messages are there, then stops. */
async function read(
  connection: Connection,
  messages: number,
  options: Parameters<typeof reading>[2] = {},
) {
  const run = reading(plugin, connection, options);
  await until('the messages', () => run.messages.length >= messages && run.states.length > 1);
  await run.stop();
  return run;
}

async function forgetGroup({ consumer_group_id: group }: Own): Promise<void> {
  const admin = broker.client().admin();
  await admin.connect();
  await until('the group to be deleted', () =>
    admin.deleteGroups([group]).then(
      () => true,
      () => false,
    ),
  );
  await admin.disconnect();
}

function seek(
  connection: Connection,
  to: SeekTarget,
  options: {
    isDryRun?: boolean;
    isRedelivering?: boolean;
    recorded?: Map<string, string>;
    keptSinceMs?: number;
  } = {},
): Promise<readonly PartitionMove[]> {
  const {
    isDryRun = false,
    isRedelivering = false,
    recorded = new Map<string, string>(),
  } = options;
  return plugin.seek!(connection, {
    settings: {},
    signal: new AbortController().signal,
    sourceId: 'source-1',
    clientId: 'gateway-seek',
    to,
    isDryRun,
    isRedelivering,
    before: { positions: recorded, keptSinceMs: () => options.keptSinceMs ?? -Infinity },
  });
}

beside(
  'a new group starts after the newest message, and keeps that place while nothing comes',
  async () => {
    const connection = await fresh(1, { start_from: 'latest' });
    const { topic_name: topic } = connection;
    await broker.produce(topic, ['old']);
    const recorded = new Map<string, string>();
    await read(connection, 0, { recorded });
    assert.equal(await broker.committed(connection.consumer_group_id, topic), [1]);
    assert.match(recorded.get(`${topic}/0`) ?? '', /^1@/);
    await broker.produce(topic, ['while it was stopped']);
    const run = await read(connection, 1, { recorded });
    assert.equal(run.bodies(), ['while it was stopped']);
  },
);

beside('a new group starts at a time', async () => {
  const at = Date.parse('2026-11-21T09:00:00Z');
  const connection = await fresh(2, { start_from: '2026-11-21T09:00:00Z' });
  const { topic_name: topic } = connection;
  await broker.produce(topic, [
    { partition: 0, value: 'before', timestamp: String(at - 1) },
    { partition: 0, value: 'at', timestamp: String(at) },
    { partition: 0, value: 'after', timestamp: String(at + 1) },
    { partition: 1, value: 'only before', timestamp: String(at - 5) },
  ]);
  const run = await read(connection, 2);
  assert.equal(run.bodies(), ['at', 'after']);
});

beside('a new group starts at given offsets, and elsewhere at the oldest message', async () => {
  const connection = await fresh(2, { start_offsets: { 0: 2, 1: 500 } });
  const { topic_name: topic } = connection;
  const of = (partition: number) => ['a', 'b', 'c'].map((value) => ({ partition, value }));
  await broker.produce(topic, [...of(0), ...of(1)]);
  const run = await read(connection, 1);
  assert.equal(run.bodies(), ['c'], 'an offset after the end is the end');
  const wrong = await failure(
    reading(plugin, await fresh(1, { start_offsets: { 7: 1 } })).done,
    'a partition that does not exist',
  );
  assert.match(wrong.message, /^There is no partition 7 of the topic/);
});

beside('start_from does not move a group that has offsets', async () => {
  const connection = await fresh();
  await broker.produce(connection.topic_name, ['1']);
  await read(connection, 1);
  await until(
    'the commit',
    async () =>
      (await broker.committed(connection.consumer_group_id, connection.topic_name))[0] === 1,
  );
  await broker.produce(connection.topic_name, ['2']);
  const run = await read({ ...connection, start_from: 'latest' }, 1);
  assert.equal(run.bodies(), ['2']);
});

beside('a group that has lost its offsets goes on where the source had read to', async () => {
  const connection = await fresh();
  const recorded = new Map<string, string>();
  await broker.produce(connection.topic_name, ['1', '2']);
  await read(connection, 2, { recorded });
  await forgetGroup(connection);
  await broker.produce(connection.topic_name, ['3']);
  const run = await read(connection, 1, { recorded });
  assert.equal(run.bodies(), ['3']);
  assert.match(
    run.states.at(-1)?.reason ?? '',
    /no longer has the offsets of partition 0 .*on_lost_offset/,
  );
});

beside('or at the newest message, or stops, by choice', async () => {
  const connection = await fresh();
  const recorded = new Map<string, string>();
  await broker.produce(connection.topic_name, ['1', '2']);
  await read(connection, 2, { recorded });
  await forgetGroup(connection);
  await broker.produce(connection.topic_name, ['3']);
  const stopped = await failure(
    reading(plugin, { ...connection, on_lost_offset: 'stop' }, { recorded }).done,
  );
  assert.match(stopped.message, /on_lost_offset is stop/);
  assert.match(stopped.fix, /sources rewind/);
  await read({ ...connection, on_lost_offset: 'latest' }, 0, { recorded });
  assert.equal(await broker.committed(connection.consumer_group_id, connection.topic_name), [3]);
});

beside('messages that were read before are passed over once their events are deleted', async () => {
  const connection = await fresh();
  const nowMs = Date.now();
  const recorded = new Map<string, string>();
  const aged = (value: string, days: number) => ({
    value,
    timestamp: String(nowMs - days * DAY_MS),
  });
  await broker.produce(connection.topic_name, [aged('40 days', 40), aged('10 days', 10)]);
  const first = await read(connection, 2, { recorded, keptSinceMs: nowMs - 30 * DAY_MS });
  assert.equal(first.bodies(), ['40 days', '10 days'], 'a first start delivers old messages');
  await forgetGroup(connection);
  await broker.produce(connection.topic_name, [aged('35 days, unread', 35)]);
  const run = reading(
    plugin,
    { ...connection, on_lost_offset: 'earliest' },
    { recorded, keptSinceMs: nowMs - 30 * DAY_MS },
  );
  await until('it to be told', () =>
    run.states.some(({ reason }) => reason?.includes('Passed over 1')),
  );
  await run.stop();
  assert.equal(run.bodies(), ['10 days', '35 days, unread']);
  assert.equal(await broker.committed(connection.consumer_group_id, connection.topic_name), [3]);
});

beside(
  'a rewind tells what it would do, then moves the group, within what the broker has',
  async () => {
    const connection = await fresh();
    const { topic_name: topic, consumer_group_id: group } = connection;
    const recorded = new Map<string, string>();
    const nowMs = Date.now();
    const keptSinceMs = nowMs - 30 * DAY_MS;
    await broker.produce(
      topic,
      [50, 40, 20, 1].map((days) => ({
        value: `${days} days`,
        timestamp: String(nowMs - days * DAY_MS),
      })),
    );
    await read(connection, 4, { recorded, keptSinceMs });
    await until('the commit', async () => (await broker.committed(group, topic))[0] === 4);
    const [planned] = await seek(connection, 'earliest', { isDryRun: true, recorded, keptSinceMs });
    const { record, ...told } = planned!;
    assert.equal(told, { partition: '0', from: '4', to: '0', again: 4, expired: 2, skipped: 0 });
    assert.match(record.position, /^4@/);
    assert.equal(await broker.committed(group, topic), [4], 'a dry run changes nothing');
    await seek(connection, 'earliest', { recorded, keptSinceMs });
    assert.equal(await broker.committed(group, topic), [0]);
    const run = await read(connection, 2, { recorded, keptSinceMs });
    assert.equal(run.bodies(), ['20 days', '1 days']);
    const [again] = await seek(connection, 'earliest', {
      recorded,
      keptSinceMs,
      isRedelivering: true,
    });
    recorded.set(again!.record.name, again!.record.position);
    const all = await read(connection, 4, { recorded, keptSinceMs });
    assert.is(all.messages.length, 4, 'with redeliver, all of them');
    await until('the commit', async () => (await broker.committed(group, topic))[0] === 4);
    await broker.produce(topic, ['new', 'newer']);
    const [skip] = await seek(connection, { positions: { 0: '5' } }, { recorded, keptSinceMs });
    assert.equal([skip?.again, skip?.skipped], [0, 1]);
    assert.equal((await read(connection, 1, { recorded })).bodies(), ['newer']);
  },
);

source.run();
