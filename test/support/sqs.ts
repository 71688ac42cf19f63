import crypto from 'node:crypto';
import {
  SendMessageBatchCommand,
  SQSClient,
  type SendMessageBatchRequestEntry,
} from '@aws-sdk/client-sqs';
import { startFauxqs } from 'fauxqs';

/** A private SQS emulator in this process. It accepts any key. */
export interface Queues {
  /** The value for a source's `endpoint`. */
  readonly endpoint: string;
  readonly port: number;
  readonly secretKey: string;
  readonly client: SQSClient;
  /** Creates a queue with a random name and SQS attributes: `{ VisibilityTimeout: '1' }`. */
  queue(attributes?: Record<string, string>): { name: string; url: string };
  connection(queueName: string): {
    readonly access_key_id: string;
    readonly secret_key: string;
    readonly default_region: string;
    readonly endpoint: string;
    readonly queue_name: string;
  };
  /** Sends bodies, ten per request, and waits until the queue has them. */
  send(queue: { url: string }, messages: readonly (string | QueueMessage)[]): Promise<void>;
  /** The number of waiting, received and delayed messages. Acknowledged messages are in none. */
  depth(queue: { name: string }): { ready: number; inFlight: number; delayed: number };
  close(): Promise<void>;
}

export interface QueueMessage {
  readonly body: string;
  readonly attributes?: Readonly<Record<string, string>>;
}

/**
 * Starts an emulator of the SQS protocol on loopback.
 * @param options.port by default a free one; reuses the port of a closed emulator
 */
export async function sqs(options: { port?: number } = {}): Promise<Queues> {
  const region = 'eu-west-1';
  const server = await startFauxqs({
    port: options.port ?? 0,
    host: '127.0.0.1',
    logger: false,
    defaultRegion: region,
  });
  const endpoint = `http://127.0.0.1:${server.port}`;
  const credentials = { accessKeyId: 'test-access-key', secretAccessKey: 'test-secret-key' };
  const client = new SQSClient({ endpoint, region, credentials });
  return {
    endpoint,
    port: server.port,
    secretKey: credentials.secretAccessKey,
    client,
    queue: (attributes = {}) => {
      const { queueName, queueUrl } = server.createQueue(
        `queue-${crypto.randomBytes(6).toString('hex')}`,
        { attributes },
      );
      return { name: queueName, url: queueUrl };
    },
    connection: (queueName) => ({
      access_key_id: credentials.accessKeyId,
      secret_key: credentials.secretAccessKey,
      default_region: region,
      endpoint,
      queue_name: queueName,
    }),
    send: async ({ url }, messages) => {
      const entries = messages.map(entry);
      for (let from = 0; from < entries.length; from += 10) {
        const { Failed = [] } = await client.send(
          new SendMessageBatchCommand({ QueueUrl: url, Entries: entries.slice(from, from + 10) }),
        );
        if (Failed[0])
          throw new Error(`the queue refused a message: ${Failed[0].Code} ${Failed[0].Message}`);
      }
    },
    depth: ({ name }) => {
      const found = server.inspectQueue(name);
      if (!found) throw new Error(`there is no queue ${name}`);
      const { ready, inflight, delayed } = found.messages;
      return { ready: ready.length, inFlight: inflight.length, delayed: delayed.length };
    },
    close: async () => {
      client.destroy();
      await server.stop();
    },
  };
}

function entry(message: string | QueueMessage, index: number): SendMessageBatchRequestEntry {
  const { body, attributes = {} } = typeof message === 'string' ? { body: message } : message;
  return {
    Id: String(index % 10),
    MessageBody: body,
    MessageAttributes: Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => [
        name,
        { DataType: 'String', StringValue: value },
      ]),
    ),
  };
}
