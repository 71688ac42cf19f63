import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  SendMessageBatchCommand,
  SQSClient,
  type SendMessageBatchRequestEntry,
} from '@aws-sdk/client-sqs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Kafka, logLevel, Partitioners, type Admin, type Producer } from 'kafkajs';
import { growTopic, kafka, randomName } from '../../support/kafka.js';
import type { KafkaServer } from '../../support/start/kafka.js';
import type { SqsServer } from '../../support/start/sqs.js';
import type { Offsets } from './reconcile.js';

/** A direct connection to a broker, unaffected by faults between broker and gateway. */
export interface Broker {
  /** Rejects if the broker is not writable. */
  connect(): Promise<void>;
  /**
   * Writes messages without retries: the broker may have stored a message that it did not
   * acknowledge.
   * @returns whether each was acknowledged
   */
  send(texts: readonly string[]): Promise<readonly boolean[]>;
  close(): Promise<void>;
}

export interface Topic extends Broker {
  readonly name: string;
  readonly group: string;
  offsets(): Promise<Offsets['kafka']>;
  /** Adds a partition, which is used immediately. */
  grow(): Promise<void>;
  /**
   * Waits until the group has read everything, deletes the topic and creates it again. Nothing is
   * written meanwhile.
   */
  recreate(): Promise<void>;
}

export interface Queue extends Broker {
  readonly name: string;
  depth(): Promise<Offsets['sqs']>;
}

const ANSWER_MS = 5_000;
const AGAIN_MS = 300;
const credentials = { accessKeyId: 'test-access-key', secretAccessKey: 'test-secret-key' };
/** A dead agent's message becomes visible after this time. */
const VISIBILITY_SECONDS = 10;

export async function topic(
  server: Pick<KafkaServer, 'listeners' | 'caFile' | 'client'>,
  partitions: number,
): Promise<Topic> {
  const setup = await kafka({ server });
  const name = await setup.topic({ partitions }).finally(() => setup.close());
  const group = randomName('group');
  const client = new Kafka({
    clientId: 'producer',
    brokers: [server.listeners.plaintext],
    logLevel: logLevel.NOTHING,
    requestTimeout: ANSWER_MS,
    retry: { retries: 0 },
  });
  let producer: Producer | undefined;
  const connected = async (): Promise<Producer> => {
    if (producer) return producer;
    const made = client.producer({
      createPartitioner: Partitioners.DefaultPartitioner,
      retry: { retries: 0 },
    });
    await made.connect();
    return (producer = made);
  };
  const close = async () => {
    const open = producer;
    producer = undefined;
    await open?.disconnect().catch(() => undefined);
  };
  // Sets timestamps explicitly, as replay tools do: after `recreate`, different messages have the
  // same partition, offset and timestamp.
  const firstMs = Date.now();
  let written = 0;
  let writing: Promise<unknown> = Promise.resolve();
  /**
   * Runs `work` while nothing is written. Retries until it succeeds: the broker may be unreachable.
   */
  const alone = (work: (admin: Admin) => Promise<void>): Promise<void> => {
    const worked = writing.then(async () => {
      await close();
      for (;;) {
        const admin = client.admin();
        try {
          await admin.connect();
          return await work(admin);
        } catch {
          await sleep(AGAIN_MS);
        } finally {
          await admin.disconnect().catch(() => undefined);
        }
      }
    });
    writing = worked;
    return worked;
  };
  const offsets = async () => {
    const asked = await kafka({ server });
    try {
      const [ends, committed] = [await asked.ends(name), await asked.committed(group, name)];
      return ends.map((end, partition) => ({
        topic: name,
        partition,
        end,
        committed: committed[partition] ?? -1,
      }));
    } finally {
      await asked.close();
    }
  };
  const exists = async (admin: Admin) => (await admin.listTopics()).includes(name);
  return {
    name,
    group,
    connect: async () => void (await connected()),
    send: (texts) => {
      const sent = writing.then(async () => {
        const messages = texts.map((value) => {
          const n = written++;
          return {
            value,
            partition: n % partitions,
            timestamp: String(firstMs + Math.floor(n / partitions)),
          };
        });
        try {
          await (await connected()).send({ topic: name, acks: -1, messages });
          return texts.map(() => true);
        } catch {
          await close();
          return texts.map(() => false);
        }
      });
      writing = sent;
      return sent;
    },
    offsets,
    grow: () =>
      alone(async (admin) => {
        if ((await admin.fetchTopicOffsets(name)).length === partitions)
          await growTopic(admin, name, partitions + 1);
        partitions++;
      }),
    recreate: () => {
      let isRead = false;
      let isDeleted = false;
      return alone(async (admin) => {
        while (!isRead) {
          isRead = (await offsets()).every(({ end, committed }) => committed >= end || end === 0);
          if (!isRead) await sleep(AGAIN_MS);
        }
        if (!isDeleted) {
          if (await exists(admin)) await admin.deleteTopics({ topics: [name] });
          while (await exists(admin)) await sleep(AGAIN_MS);
          isDeleted = true;
        }
        if (!(await exists(admin)))
          await admin.createTopics({
            waitForLeaders: true,
            topics: [{ topic: name, numPartitions: partitions }],
          });
        written = 0;
      });
    },
    close,
  };
}

export async function queue(server: SqsServer): Promise<Queue> {
  const name = randomName('queue');
  const client = new SQSClient({
    endpoint: `http://127.0.0.1:${server.port}`,
    useQueueUrlAsEndpoint: false,
    region: server.region,
    credentials,
    maxAttempts: 1,
    requestHandler: {
      requestTimeout: ANSWER_MS,
      connectionTimeout: ANSWER_MS,
      throwOnRequestTimeout: true,
    },
  });
  const { QueueUrl } = await client.send(
    new CreateQueueCommand({
      QueueName: name,
      Attributes: { VisibilityTimeout: String(VISIBILITY_SECONDS) },
    }),
  );
  const ten = async (texts: readonly string[]): Promise<boolean[]> => {
    const Entries = texts.map((MessageBody, index): SendMessageBatchRequestEntry => ({
      Id: String(index),
      MessageBody,
    }));
    try {
      const { Successful = [] } = await client.send(
        new SendMessageBatchCommand({ QueueUrl, Entries }),
      );
      const taken = new Set(Successful.map(({ Id }) => Number(Id)));
      return texts.map((_text, index) => taken.has(index));
    } catch {
      return texts.map(() => false);
    }
  };
  const depth = async () => {
    const names = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const;
    const { Attributes = {} } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: [...names] }),
    );
    const [ready, inFlight] = names.map((attribute) => Number(Attributes[attribute]));
    return { ready: ready!, inFlight: inFlight! };
  };
  return {
    name,
    connect: async () => void (await depth()),
    send: async (texts) => {
      const tens = Array.from({ length: Math.ceil(texts.length / 10) }, (_, k) =>
        texts.slice(10 * k, 10 * k + 10),
      );
      return (await Promise.all(tens.map(ten))).flat();
    },
    depth,
    close: async () => client.destroy(),
  };
}

/** A source that reads the topic from a broker, given as `host:port`. */
export function topicSource({ name, group }: Topic, broker: string): object {
  const kafka = { brokers: [broker], topic_name: name, consumer_group_id: group };
  return { name: 'topic', type: 'pub_sub', pub_sub: { type: 'kafka', workers: 1, kafka } };
}

/** A source that reads the queue through a proxy on this port. */
export function queueSource({ name }: Queue, { region }: SqsServer, port: number): object {
  const sqs = {
    access_key_id: credentials.accessKeyId,
    secret_key: credentials.secretAccessKey,
    default_region: region,
    endpoint: `http://127.0.0.1:${port}`,
    queue_name: name,
  };
  return { name: 'queue', type: 'pub_sub', pub_sub: { type: 'sqs', workers: 2, sqs } };
}
