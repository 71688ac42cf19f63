import { buildApp } from 'fauxqs';
import { LOOPBACK } from './ports.js';
import { Problem } from './problem.js';

/** The region of the emulator, and keys that it takes like any others. */
export const QUEUE_REGION = 'eu-west-1';
export const QUEUE_KEYS = { access_key_id: 'development', secret_key: 'development' } as const;

const ACCOUNT = '000000000000';

export interface Queue {
  /** What a client is given as its endpoint. */
  readonly endpoint: string;
  readonly url: string;
  /** Sends a message; resolves when it is in the queue. */
  send(body: string): Promise<void>;
  close(): Promise<void>;
}

type Answer = Readonly<Record<string, string>>;

/**
 * Starts an SQS emulator on loopback with one queue. Its messages live in the memory of this process. It speaks the JSON protocol of SQS, and of
 * the query protocol, which curl can speak without quoting JSON inside of JSON, `SendMessage`.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
 *
 * @param beforeListen is called when the port is needed
 */
export async function startQueue({
  port,
  name,
  beforeListen,
}: {
  port: number;
  name: string;
  beforeListen: () => Promise<void>;
}): Promise<Queue> {
  // Not its own start function: that listens on every address of the machine.
  const app = buildApp({ logger: false, defaultRegion: QUEUE_REGION });
  const endpoint = `http://${LOOPBACK}:${port}`;
  const url = `${endpoint}/${ACCOUNT}/${name}`;
  /** The emulator knows its queues by a host name that does not resolve everywhere. */
  const inside = `http://sqs.${QUEUE_REGION}.localhost:${port}`;

  const call = async (action: string, body: object): Promise<{ status: number; answer: Answer }> => {
    const headers = { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': `AmazonSQS.${action}`, host: `${LOOPBACK}:${port}` };
    const { statusCode: status, payload } = await app.inject({ method: 'POST', url: '/', headers, payload: JSON.stringify(body) });
    return { status, answer: JSON.parse(payload || '{}') as Answer };
  };
  const expect = async (action: string, body: object): Promise<void> => {
    const { status, answer } = await call(action, body);
    if (status !== 200)
      throw new Problem(`the queue refused ${action}: ${answer['message']}`, { fix: 'report this: it is a fault of the gateway' });
  };

  app.addHook('preHandler', async (request, reply) => {
    const body = (request.body ?? {}) as Record<string, unknown>;
    const { QueueUrl: given } = body;
    if (typeof given !== 'string') return;
    // As with SQS itself the path names the queue.
    body['QueueUrl'] = given.replace(/^https?:\/\/[^/]+/, inside);
    if (body['Action'] !== 'SendMessage') return;
    const { status, answer } = await call('SendMessage', { QueueUrl: body['QueueUrl'], MessageBody: body['MessageBody'] });
    return reply
      .code(status)
      .header('content-type', 'text/xml')
      .send(status === 200 ? sentXml(answer) : errorXml(answer));
  });
  app.addHook('onSend', async (request, _reply, payload) => {
    if (typeof payload !== 'string') return payload;
    const isReceive = request.headers['x-amz-target'] === 'AmazonSQS.ReceiveMessage';
    if (isReceive && request.raw.socket.destroyed) await giveBack(request.body as { QueueUrl: string }, payload);
    return payload.replaceAll(inside, endpoint);
  });

  /** A poller that has gone away was given messages: they are to be seen by the next one, and not in half a minute. */
  async function giveBack({ QueueUrl }: { QueueUrl: string }, payload: string): Promise<void> {
    const { Messages: messages = [] } = JSON.parse(payload) as { Messages?: { ReceiptHandle: string }[] };
    for (const { ReceiptHandle } of messages) await call('ChangeMessageVisibility', { QueueUrl, ReceiptHandle, VisibilityTimeout: 0 });
  }

  await beforeListen();
  await app.listen({ port, host: LOOPBACK });
  await expect('CreateQueue', { QueueName: name });
  return { endpoint, url, send: (body) => expect('SendMessage', { QueueUrl: url, MessageBody: body }), close: () => app.close() };
}

const NAMESPACE = 'http://queue.amazonaws.com/doc/2012-11-05/';

function sentXml({ MessageId, MD5OfMessageBody }: Answer): string {
  const result = `<MessageId>${MessageId}</MessageId><MD5OfMessageBody>${MD5OfMessageBody}</MD5OfMessageBody>`;
  return `<SendMessageResponse xmlns="${NAMESPACE}"><SendMessageResult>${result}</SendMessageResult></SendMessageResponse>\n`;
}

function errorXml({ __type = '', message = '' }: Answer): string {
  const escaped = message.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const error = `<Code>${__type.split('#').at(-1)}</Code><Message>${escaped}</Message>`;
  return `<ErrorResponse xmlns="${NAMESPACE}"><Error>${error}</Error></ErrorResponse>\n`;
}
