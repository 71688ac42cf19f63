import crypto from 'node:crypto';
import fs from 'node:fs';
import {
  type Admin,
  Kafka,
  type KafkaConfig,
  logLevel,
  type Message,
  Partitioners,
  type Producer,
} from 'kafkajs';
import { services } from './services.js';
import { type KafkaListeners, type KafkaServer, kafkaUsers } from './start/kafka.js';
import { until } from './until.js';

export interface KafkaBroker {
  /** Listeners as `host:port`. */
  readonly listeners: KafkaListeners;
  /** The SASL users. */
  readonly users: typeof kafkaUsers;
  /** PEM text of the authority's certificate. */
  readonly ca: string;
  /** PEM text of a signed client certificate and its key. */
  readonly identity: { readonly client_cert: string; readonly client_key: string };
  /** Creates a topic with a random name and waits until it has leaders. */
  topic(options?: { partitions?: number; configEntries?: Record<string, string> }): Promise<string>;
  /** Gives a topic more partitions, like `growTopic`. */
  grow(topic: string, partitions: number): Promise<void>;
  /**
   * Sends messages and waits until the broker has them. The partition is the message's, else
   * derived from its key, else round-robin.
   */
  produce(topic: string, messages: readonly (Message | string)[]): Promise<void>;
  /** Committed offsets of a group, by partition; -1 without one. */
  committed(groupId: string, topic: string): Promise<number[]>;
  members(groupId: string): Promise<number>;
  /** The offset after the last message, by partition. */
  ends(topic: string): Promise<number[]>;
  /** Deletes the messages before an offset, like retention. */
  trim(topic: string, partition: number, offset: number): Promise<void>;
  /** A separate client for any listener; the caller closes it. */
  client(config?: Partial<KafkaConfig>): Kafka;
  close(): Promise<void>;
}

/**
 * Connects to the shared Kafka.
 * @param options.server another one, from `own.kafka()`
 */
export async function kafka(
  options: { server?: Pick<KafkaServer, 'listeners' | 'caFile' | 'client'> } = {},
): Promise<KafkaBroker> {
  const { listeners, caFile, client: own } = options.server ?? (await services.kafka());
  const client = (config: Partial<KafkaConfig> = {}) =>
    new Kafka({
      clientId: 'test',
      brokers: [listeners.plaintext],
      logLevel: logLevel.NOTHING,
      ...config,
    });
  const shared = client();
  const admin: Admin = shared.admin();
  const producer: Producer = shared.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
  });
  await admin.connect();
  await producer.connect();
  // kafkajs shares a pending metadata request with later callers, even for topics that it does not
  // name: the response then lacks their partitions.
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
    identity: {
      client_cert: fs.readFileSync(own.certificate, 'utf8'),
      client_key: fs.readFileSync(own.key, 'utf8'),
    },
    client,
    topic: async ({ partitions = 1, configEntries = {} } = {}) => {
      const topic = randomName('topic');
      const entries = Object.entries(configEntries).map(([name, value]) => ({ name, value }));
      await inTurn(() =>
        admin.createTopics({
          waitForLeaders: true,
          topics: [{ topic, numPartitions: partitions, configEntries: entries }],
        }),
      );
      // A broker reports that it leads a partition before it serves it.
      await inTurn(() =>
        until(
          'the topic to answer',
          async () => (await admin.fetchTopicOffsets(topic)).length === partitions,
        ),
      );
      return topic;
    },
    grow: (topic, partitions) => inTurn(() => growTopic(admin, topic, partitions)),
    produce: async (topic, messages) => {
      for (let from = 0; from < messages.length; from += 500) {
        const batch = messages
          .slice(from, from + 500)
          .map((message) => (typeof message === 'string' ? { value: message } : message));
        await producer.send({ topic, messages: batch });
      }
    },
    committed: async (groupId, topic) => {
      const [found] = await inTurn(() => admin.fetchOffsets({ groupId, topics: [topic] }));
      return byPartition(found?.partitions ?? []);
    },
    members: async (groupId) =>
      (await inTurn(() => admin.describeGroups([groupId]))).groups[0]!.members.length,
    ends: async (topic) => byPartition(await inTurn(() => admin.fetchTopicOffsets(topic))),
    trim: (topic, partition, offset) =>
      inTurn(async () => {
        // kafkajs deletes records only in topics that it has metadata for.
        await admin.fetchTopicOffsets(topic);
        await admin.deleteTopicRecords({
          topic,
          partitions: [{ partition, offset: String(offset) }],
        });
      }),
    close: async () => {
      await producer.disconnect();
      await admin.disconnect();
    },
  };
}

/**
 * Gives a topic more partitions and waits until the broker's metadata has their leaders. The
 * request to add them returns earlier, and a kafkajs producer drops messages of partitions that its
 * metadata lacks, without an error.
 */
export async function growTopic(admin: Admin, topic: string, partitions: number): Promise<void> {
  await admin.createPartitions({ topicPartitions: [{ topic, count: partitions }] });
  await until('the leaders of the new partitions', async () => {
    // kafkajs rejects while a leader is missing.
    const found = await admin.fetchTopicMetadata({ topics: [topic] }).catch(() => undefined);
    return found?.topics[0]?.partitions.length === partitions;
  });
}

/** Returns a unique name: `topic-5f1c…`. */
export function randomName(prefix: string): string {
  return `${prefix}-${crypto.randomBytes(6).toString('hex')}`;
}

/**
 * Replaces a broker's address in a response by the proxy's: brokers advertise host and port, and
 * clients connect there.
 */
export function readdressed(answer: Buffer, from: number, to: number): Buffer {
  const address = (port: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(port);
    return Buffer.concat([Buffer.from('127.0.0.1'), bytes]);
  };
  const changed = Buffer.from(answer);
  for (
    let at = changed.indexOf(address(from));
    at >= 0;
    at = changed.indexOf(address(from), at + 1)
  )
    address(to).copy(changed, at);
  return changed;
}

function byPartition(offsets: readonly { partition: number; offset: string }[]): number[] {
  return [...offsets].sort((a, b) => a.partition - b.partition).map(({ offset }) => Number(offset));
}
