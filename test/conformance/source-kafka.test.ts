import net from 'node:net';
import { suite } from 'uvu';
import {
  sourceConformance,
  sourceRules,
  type Place,
  type SourceRig,
} from '@gateway/plugin-conformance';
import plugin, { type Connection } from '@gateway/source-kafka';
import { kafka, type KafkaBroker, randomName, readdressed } from '../support/kafka.js';
import { loopback } from '../support/ports.js';
import { proxy } from '../support/proxy.js';
import { judged } from './judged.js';

const conforms = suite('conformance/source-kafka');

judged(conforms, sourceRules, () => sourceConformance(plugin, rig, { atOnce: 12 }), [
  // A reader keeps its partition as long as it lives.
  'keeps-a-message-that-takes-long',
]);

conforms.run();

/** The shared broker behind a proxy that can be cut. */
async function rig(): Promise<SourceRig<Connection>> {
  const broker = await kafka();
  const sockets = new Set<net.Socket>();
  const silent = net.createServer((socket) => void sockets.add(socket));
  const silentPort = await loopback(silent);
  const listener = Number(broker.listeners.plaintext.split(':')[1]);
  const guarded = await proxy(
    { port: listener },
    { rewrite: (bytes, port) => readdressed(bytes, listener, port) },
  );
  const wrong = { username: broker.users.scram.username, password: 'not-the-password' };

  return {
    shape: 'topic',
    open: ({ partitions }) => open(broker, partitions),
    openBreakable: async () => {
      const place = await open(broker, 1);
      return {
        ...place,
        connection: { ...place.connection, brokers: [`127.0.0.1:${guarded.port}`] },
        cut: () => Promise.resolve(guarded.cut()),
        heal: () => Promise.resolve(guarded.restore()),
      };
    },
    reader: import.meta.resolve('@gateway/source-kafka'),
    wrongCredentials: {
      connection: {
        brokers: [broker.listeners.saslPlaintext],
        topic_name: 'any',
        auth: { type: 'scram', hash: 'SHA512', ...wrong },
      },
      secrets: [wrong.password],
    },
    missing: {
      connection: { brokers: [broker.listeners.plaintext], topic_name: randomName('topic') },
    },
    silent: { connection: { brokers: [`127.0.0.1:${silentPort}`], topic_name: 'any' } },
    close: async () => {
      silent.close();
      for (const socket of sockets) socket.destroy();
      await guarded.close();
      await broker.close();
    },
  };
}

async function open(broker: KafkaBroker, partitions: number): Promise<Place<Connection>> {
  const [topic, group] = [await broker.topic({ partitions }), randomName('group')];
  return {
    connection: {
      brokers: [broker.listeners.plaintext],
      topic_name: topic,
      consumer_group_id: group,
    },
    send: (messages) =>
      broker.produce(
        topic,
        messages.map(({ body, headers, partition }) => ({
          value: Buffer.from(body),
          headers: { ...headers },
          partition,
        })),
      ),
    unacknowledged: async () => {
      const [ends, committed] = [await broker.ends(topic), await broker.committed(group, topic)];
      return ends.reduce(
        (sum, end, partition) => sum + end - Math.max(0, committed[partition] ?? 0),
        0,
      );
    },
  };
}
