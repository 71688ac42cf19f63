import crypto from 'node:crypto';
import fs from 'node:fs';
import { type Admin, Kafka, type KafkaConfig, logLevel, type Message, Partitioners, type Producer } from 'kafkajs';
import { services } from './services.js';
import { type KafkaListeners, type KafkaServer, kafkaUsers } from './start/kafka.js';
import { until } from './until.js';

/** The shared Kafka, as a test uses it. */
export interface KafkaBroker {
  /** Each listener as `host:port`. */
  readonly listeners: KafkaListeners;
  /** Who may log in where SASL is asked for. */
  readonly users: typeof kafkaUsers;
  /** The authority's certificate, as the text of its PEM file. */
  readonly ca: string;
  /** PEM of a client certificate that the authority signed, and of its key. */
  readonly identity: { readonly client_cert: string; readonly client_key: string };
  /** Makes a topic with a random name and waits until it has leaders. */
  topic(options?: { partitions?: number; configEntries?: Record<string, string> }): Promise<string>;
  /** Sends messages and waits until the broker has them. The partition is the message's own, else that of its key, else they take turns. */
  produce(topic: string, messages: readonly (Message | string)[]): Promise<void>;
  /** What a group has committed, by partition; -1 where nothing. */
  committed(groupId: string, topic: string): Promise<number[]>;
  /** How many members a group has. */
  members(groupId: string): Promise<number>;
  /** The offset behind the last message, by partition. */
  ends(topic: string): Promise<number[]>;
  /** Deletes the messages of a partition before this offset, as retention does. */
  trim(topic: string, partition: number, offset: number): Promise<void>;
  /** A client of one's own for any listener; close what you open with it. */
  client(config?: Partial<KafkaConfig>): Kafka;
  close(): Promise<void>;
}

/**
 * Connects to the shared Kafka.
 * @param options.server another one, of `own.kafka()`
 */
export async function kafka(options: { server?: Pick<KafkaServer, 'listeners' | 'caFile' | 'client'> } = {}): Promise<KafkaBroker> {
  const { listeners, caFile, client: own } = options.server ?? (await services.kafka());
  const client = (config: Partial<KafkaConfig> = {}) =>
    new Kafka({ clientId: 'test', brokers: [listeners.plaintext], logLevel: logLevel.NOTHING, ...config });
  const shared = client();
  const admin: Admin = shared.admin();
  const producer: Producer = shared.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await admin.connect();
  await producer.connect();
  // kafkajs gives a metadata request under way to whoever asks next, whose topic it may not name: the answer then holds no partition of it.
  let before: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(ask: () => Promise<T>): Promise<T> => {
    const answer = before.then(ask);
    before = answer.catch(() => {});
    return answer;
  };
  return {
    listeners,
    users: kafkaUsers,
    ca: fs.readFileSync(caFile, 'utf8'),
    identity: { client_cert: fs.readFileSync(own.certificate, 'utf8'), client_key: fs.readFileSync(own.key, 'utf8') },
    client,
    topic: async ({ partitions = 1, configEntries = {} } = {}) => {
      const topic = randomName('topic');
      const entries = Object.entries(configEntries).map(([name, value]) => ({ name, value }));
      await inTurn(() =>
        admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: partitions, configEntries: entries }] }),
      );
      // A broker tells that it leads a partition before it answers for it.
      await inTurn(() => until('the topic to answer', async () => (await admin.fetchTopicOffsets(topic)).length === partitions));
      return topic;
    },
    produce: async (topic, messages) => {
      for (let from = 0; from < messages.length; from += 500) {
        const batch = messages.slice(from, from + 500).map((message) => (typeof message === 'string' ? { value: message } : message));
        await producer.send({ topic, messages: batch });
      }
    },
    committed: async (groupId, topic) => {
      const [found] = await inTurn(() => admin.fetchOffsets({ groupId, topics: [topic] }));
      return byPartition(found?.partitions ?? []);
    },
    members: async (groupId) => (await inTurn(() => admin.describeGroups([groupId]))).groups[0]!.members.length,
    ends: async (topic) => byPartition(await inTurn(() => admin.fetchTopicOffsets(topic))),
    trim: (topic, partition, offset) =>
      inTurn(async () => {
        // kafkajs deletes only in topics that it has asked for.
        await admin.fetchTopicOffsets(topic);
        await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] });
      }),
    close: async () => {
      await producer.disconnect();
      await admin.disconnect();
    },
  };
}

/** A name that no other test uses: `topic-5f1c…`. */
export function randomName(prefix: string): string {
  return `${prefix}-${crypto.randomBytes(6).toString('hex')}`;
}

/** An answer of the broker in which its own address is that of the proxy: brokers tell host and port, and clients go there. */
export function readdressed(answer: Buffer, from: number, to: number): Buffer {
  const address = (port: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(port);
    return Buffer.concat([Buffer.from('127.0.0.1'), bytes]);
  };
  const changed = Buffer.from(answer);
  for (let at = changed.indexOf(address(from)); at >= 0; at = changed.indexOf(address(from), at + 1)) address(to).copy(changed, at);
  return changed;
}

function byPartition(offsets: readonly { partition: number; offset: string }[]): number[] {
  return [...offsets].sort((a, b) => a.partition - b.partition).map(({ offset }) => Number(offset));
}
