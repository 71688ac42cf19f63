import { buildApp } from 'fauxqs';
import { DevError } from './dev-error.js';
import { LOOPBACK } from './ports.js';

export const QUEUE_NAME = 'orders';

/** Arbitrary: the emulator accepts any region and any credentials. */
export const QUEUE_REGION = 'eu-west-1';
export const QUEUE_KEYS = { access_key_id: 'development', secret_key: 'development' } as const;

const ACCOUNT = '000000000000';

export interface QueueEmulator {
  readonly endpoint: string;
  readonly url: string;
  send(body: string): Promise<void>;
  close(): Promise<void>;
}

type SqsResponse = Readonly<Record<string, string>>;

/**
 * Starts an SQS emulator on loopback with one in-memory queue. It supports the JSON protocol, and
 * `SendMessage` of the query protocol, so that curl can send a message without escaping JSON inside
 * JSON:
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
 */
export async function startQueue(port: number): Promise<QueueEmulator> {
  // The emulator's own start function listens on all addresses, so the app is built here instead.
  const app = buildApp({ logger: false, defaultRegion: QUEUE_REGION });
  const endpoint = `http://${LOOPBACK}:${port}`;
  const url = `${endpoint}/${ACCOUNT}/${QUEUE_NAME}`;
  // The host in the emulator's queue URLs. Not every system resolves it, so requests and responses
  // are rewritten.
  const internalEndpoint = `http://sqs.${QUEUE_REGION}.localhost:${port}`;

  const call = async (
    action: string,
    body: object,
  ): Promise<{ status: number; answer: SqsResponse }> => {
    const headers = {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': `AmazonSQS.${action}`,
      host: `${LOOPBACK}:${port}`,
    };
    const { statusCode: status, payload } = await app.inject({
      method: 'POST',
      url: '/',
      headers,
      payload: JSON.stringify(body),
    });
    return { status, answer: JSON.parse(payload || '{}') as SqsResponse };
  };
  const expect = async (action: string, body: object): Promise<void> => {
    const { status, answer } = await call(action, body);
    if (status !== 200)
      throw new DevError(
        `the queue refused ${action}: ${answer['message']}`,
        'report this: it is a bug in the gateway',
      );
  };

  app.addHook('preHandler', async (request, reply) => {
    const body = (request.body ?? {}) as Record<string, unknown>;
    if (typeof body['QueueUrl'] !== 'string') return;
    // As in SQS, only the path identifies the queue.
    body['QueueUrl'] = body['QueueUrl'].replace(/^https?:\/\/[^/]+/, internalEndpoint);
    if (body['Action'] !== 'SendMessage') return;
    const { status, answer } = await call('SendMessage', {
      QueueUrl: body['QueueUrl'],
      MessageBody: body['MessageBody'],
    });
    const xml = status === 200 ? sentXml(answer) : errorXml(answer);
    return reply.code(status).header('content-type', 'text/xml').send(xml);
  });
  app.addHook('onSend', async (request, _reply, payload) => {
    if (typeof payload !== 'string') return payload;
    // A disconnected client does not receive the messages, so they are made visible again now
    // instead of after half a minute.
    if (
      request.headers['x-amz-target'] === 'AmazonSQS.ReceiveMessage' &&
      request.raw.socket.destroyed
    ) {
      const { QueueUrl } = request.body as { QueueUrl: string };
      const { Messages: messages = [] } = JSON.parse(payload) as {
        Messages?: { ReceiptHandle: string }[];
      };
      for (const { ReceiptHandle } of messages)
        await call('ChangeMessageVisibility', { QueueUrl, ReceiptHandle, VisibilityTimeout: 0 });
    }
    return payload.replaceAll(internalEndpoint, endpoint);
  });

  await app.listen({ port, host: LOOPBACK });
  await expect('CreateQueue', { QueueName: QUEUE_NAME });
  return {
    endpoint,
    url,
    send: (body) => expect('SendMessage', { QueueUrl: url, MessageBody: body }),
    close: () => app.close(),
  };
}

const NAMESPACE = 'http://queue.amazonaws.com/doc/2012-11-05/';

function sentXml({ MessageId, MD5OfMessageBody }: SqsResponse): string {
  const result = `<MessageId>${MessageId}</MessageId><MD5OfMessageBody>${MD5OfMessageBody}</MD5OfMessageBody>`;
  return `<SendMessageResponse xmlns="${NAMESPACE}"><SendMessageResult>${result}</SendMessageResult></SendMessageResponse>\n`;
}

function errorXml({ __type = '', message = '' }: SqsResponse): string {
  const escaped = message.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const error = `<Code>${__type.split('#').at(-1)}</Code><Message>${escaped}</Message>`;
  return `<ErrorResponse xmlns="${NAMESPACE}"><Error>${error}</Error></ErrorResponse>\n`;
}
