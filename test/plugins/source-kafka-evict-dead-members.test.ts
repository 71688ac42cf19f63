import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin from '@gateway/source-kafka';
import { isDead } from '#source-kafka/evict-dead-members';
import { kafka, randomName } from '../support/kafka.js';
import { until } from '../support/until.js';
import { reader, reading } from './reading.js';

const evict = suite('plugins/source-kafka-evict-dead-members');

const broker = await kafka();
evict.after(() => broker.close());

const own = `gateway-host-1-${process.pid}-abc123`;
const of = (pid: number | string, rest = '') => `gateway-host-1-${pid}-abc123${rest}`;
const nobody = () => false;
const everybody = () => true;

evict('a member of a process that has ended is dead, with any worker number', () => {
  for (const clientId of [of(7), of(7, '-2'), of(7, '-12')]) {
    assert.ok(isDead(clientId, own, nobody), clientId);
    assert.not(isDead(clientId, own, everybody), `${clientId}, alive`);
  }
});

evict('one with the own process id is dead too: nothing of this process has joined yet', () => {
  assert.ok(isDead(own, own, everybody));
  assert.ok(isDead(`${own}-3`, own, everybody));
});

evict('members of other machines, sources and programs are not dead', () => {
  for (const clientId of [
    `gateway-host-2-7-abc123`,
    `gateway-host-1-7-abc124`,
    'gateway-host-1--abc123',
    'gateway-host-1-x-abc123',
    'gateway-host-1-abc123',
    'kafkajs',
    '',
  ])
    assert.not(isDead(clientId, own, nobody), clientId);
});

evict(
  'a reader that starts where one was killed reads at once, and does not wait for its session to end',
  async () => {
    const connection = {
      brokers: [broker.listeners.plaintext],
      topic_name: await broker.topic({ partitions: 2 }),
      consumer_group_id: randomName('group'),
    };
    const child = reader('@gateway/source-kafka', connection, {
      handle: 'never',
      clientId: 'gateway-test-PID-source',
    });
    await broker.produce(connection.topic_name, ['one']);
    await until('the child to hold it', () => child.output().includes('message'));
    child.kill('SIGKILL');
    await child.exited;
    const began = Date.now();
    const run = reading(plugin, connection, { clientId: `gateway-test-${process.pid}-source` });
    await until('the message', () => run.messages.length === 1);
    console.log(`    read ${Date.now() - began} ms after the start; a session is 6,000 ms`);
    assert.ok(
      run.logs.some(({ sentence }) => sentence.includes('removed the member of a killed process')),
    );
    await run.stop();
  },
);

evict('a live reader that is removed by mistake joins again, and nothing is lost', async () => {
  const connection = {
    brokers: [broker.listeners.plaintext],
    topic_name: await broker.topic({ partitions: 2 }),
    consumer_group_id: randomName('group'),
  };
  const clientId = `gateway-same-${process.pid}-source`;
  const first = reading(plugin, connection, { clientId });
  await until('the first', () => first.states.at(-1)?.state === 'reading');
  const second = reading(plugin, connection, { clientId });
  await until(
    'both to be members',
    async () => (await broker.members(connection.consumer_group_id)) === 2,
  );
  await broker.produce(
    connection.topic_name,
    Array.from({ length: 20 }, (_, n) => ({ partition: n % 2, value: String(n) })),
  );
  await until('all messages', () => new Set([...first.bodies(), ...second.bodies()]).size === 20);
  await Promise.all([first.stop(), second.stop()]);
});

evict.run();
