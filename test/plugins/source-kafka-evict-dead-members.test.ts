import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin from '@gateway/source-kafka';
import { isPredecessor } from '#source-kafka/predecessors';
import { kafka, randomName } from '../support/kafka.js';
import { until } from '../support/until.js';
import { reader, reading } from './reading.js';

const predecessors = suite('plugins/source-kafka-predecessors');

const broker = await kafka();
predecessors.after(() => broker.close());

const own = `gateway-host-1-${process.pid}-abc123`;
const of = (pid: number | string, rest = '') => `gateway-host-1-${pid}-abc123${rest}`;
const nobody = () => false;
const everybody = () => true;

predecessors('a member of a process that is gone is a predecessor, with any number of its worker', () => {
  for (const clientId of [of(7), of(7, '-2'), of(7, '-12')]) {
    assert.ok(isPredecessor(clientId, own, nobody), clientId);
    assert.not(isPredecessor(clientId, own, everybody), `${clientId}, alive`);
  }
});

predecessors('one with the own process id is a predecessor too: nothing of this process has joined yet', () => {
  assert.ok(isPredecessor(own, own, everybody));
  assert.ok(isPredecessor(`${own}-3`, own, everybody));
});

predecessors('members of other machines, sources and programs are none', () => {
  for (const clientId of [
    `gateway-host-2-7-abc123`,
    `gateway-host-1-7-abc124`,
    'gateway-host-1--abc123',
    'gateway-host-1-x-abc123',
    'gateway-host-1-abc123',
    'kafkajs',
    '',
  ])
    assert.not(isPredecessor(clientId, own, nobody), clientId);
});

predecessors('a reader that starts where one was killed reads at once, and does not wait for its session to end', async () => {
  const connection = {
    brokers: [broker.listeners.plaintext],
    topic_name: await broker.topic({ partitions: 2 }),
    consumer_group_id: randomName('group'),
  };
  const child = reader('@gateway/source-kafka', connection, { handle: 'never', clientId: 'gateway-test-PID-source' });
  await broker.produce(connection.topic_name, ['one']);
  await until('the child to hold it', () => child.output().includes('message'));
  child.kill('SIGKILL');
  await child.exited;
  const began = Date.now();
  const run = reading(plugin, connection, { clientId: `gateway-test-${process.pid}-source` });
  await until('the message', () => run.messages.length === 1);
  console.log(`    read ${Date.now() - began} ms after the start; a session is 6,000 ms`);
  assert.ok(run.logs.some(({ sentence }) => sentence.includes('was taken out of the group')));
  await run.stop();
});

predecessors('a reader that is taken for dead and lives joins again, and nothing is lost', async () => {
  const connection = {
    brokers: [broker.listeners.plaintext],
    topic_name: await broker.topic({ partitions: 2 }),
    consumer_group_id: randomName('group'),
  };
  const clientId = `gateway-same-${process.pid}-source`;
  const first = reading(plugin, connection, { clientId });
  await until('the first', () => first.states.at(-1)?.state === 'reading');
  const second = reading(plugin, connection, { clientId });
  await until('both to be members', async () => (await broker.members(connection.consumer_group_id)) === 2);
  await broker.produce(
    connection.topic_name,
    Array.from({ length: 20 }, (_, n) => ({ partition: n % 2, value: String(n) })),
  );
  await until('all messages', () => new Set([...first.bodies(), ...second.bodies()]).size === 20);
  await Promise.all([first.stop(), second.stop()]);
});

predecessors.run();
