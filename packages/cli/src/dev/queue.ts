import { buildApp } from 'fauxqs';
import { LOOPBACK } from './ports.js';
import { Problem } from './problem.js';

/** The region of the emulator, and keys that it takes like any others. */
export const QUEUE_REGION = 'eu-west-1';
export const QUEUE_KEYS = { access_key_id: 'development', secret_key: 'development' } as const;

const JSON_TYPE = 'application/x-amz-json-1.0';
const ACCOUNT = '000000000000';

export interface Queue {
  /** What a client is given as its endpoint. */
  readonly endpoint: string;
  readonly url: string;
  /** Sends a message; resolves when it is in the queue. */
  send(body: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts an SQS emulator on loopback with one queue. Its messages live in the memory of this process. It speaks the JSON protocol of SQS, and of
 * the query protocol, which curl can speak without quoting JSON inside of JSON, `SendMessage`.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
 */
export async function startQueue({ port, name }: { port: number; name: string }): Promise<Queue> {
  // Not its own start function: that listens on every address of the machine.
  const app = buildApp({ logger: false, defaultRegion: QUEUE_REGION });
  const endpoint = `http://${LOOPBACK}:${port}`;
  /** The URL that the emulator knows the queue by, with a host name that does not resolve everywhere. */
  const urls = new Map<string, string>();

  const call = async (action: string, body: object): Promise<{ status: number; answer: Record<string, string> }> => {
    const headers = { 'content-type': JSON_TYPE, 'x-amz-target': `AmazonSQS.${action}`, host: `${LOOPBACK}:${port}` };
    const { statusCode, payload } = await app.inject({ method: 'POST', url: '/', headers, payload: JSON.stringify(body) });
    return { status: statusCode, answer: JSON.parse(payload || '{}') as Record<string, string> };
  };

  app.addHook('preHandler', async (request, reply) => {
    const body = request.body as Record<string, unknown> | null;
    if (typeof body?.['QueueUrl'] !== 'string') return;
    // As with SQS itself the path names the queue.
    const known = urls.get(body['QueueUrl'].split('/').at(-1) ?? '');
    if (known !== undefined) body['QueueUrl'] = known;
    if (body['Action'] !== 'SendMessage') return;
    const { status, answer } = await call('SendMessage', { QueueUrl: body['QueueUrl'], MessageBody: body['MessageBody'] });
    return reply.code(status).header('content-type', 'text/xml').send(status === 200 ? sentXml(answer) : errorXml(answer));
  });
  app.addHook('onSend', async (request, _reply, payload) => {
    if (typeof payload !== 'string') return payload;
    if (isReceive(request.headers) && request.raw.socket.destroyed) await giveBack(payload);
    return [...urls].reduce((text, [queue, known]) => text.replaceAll(known, urlOf(queue)), payload);
  });

  /** A poller that has gone away was given messages: they are to be seen by the next one, and not in half a minute. */
  async function giveBack(payload: string): Promise<void> {
    const { Messages: messages = [] } = JSON.parse(payload) as { Messages?: { ReceiptHandle: string }[] };
    const [known] = urls.values();
    for (const { ReceiptHandle } of messages) await call('ChangeMessageVisibility', { QueueUrl: known, ReceiptHandle, VisibilityTimeout: 0 });
  }

  const urlOf = (queue: string) => `${endpoint}/${ACCOUNT}/${queue}`;
  await app.listen({ port, host: LOOPBACK });
  const { answer: made } = await call('CreateQueue', { QueueName: name });
  if (made['QueueUrl'] === undefined) throw new Problem(`the queue ${name} could not be made: ${made['message']}`, { fix: 'report this: it is a fault of the gateway' });
  urls.set(name, made['QueueUrl']);

  return {
    endpoint,
    url: urlOf(name),
    async send(body) {
      const { status, answer } = await call('SendMessage', { QueueUrl: urlOf(name), MessageBody: body });
      if (status !== 200) throw new Problem(`the queue refused the message: ${answer['message']}`, { fix: 'report this: it is a fault of the gateway' });
    },
    close: () => app.close(),
  };
}

function isReceive(headers: Readonly<Record<string, unknown>>): boolean {
  return headers['x-amz-target'] === 'AmazonSQS.ReceiveMessage';
}

function sentXml({ MessageId = '', MD5OfMessageBody = '' }: Record<string, string>): string {
  const result = `<MessageId>${MessageId}</MessageId><MD5OfMessageBody>${MD5OfMessageBody}</MD5OfMessageBody>`;
  return `<SendMessageResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><SendMessageResult>${result}</SendMessageResult></SendMessageResponse>\n`;
}

function errorXml({ __type = '', message = '' }: Record<string, string>): string {
  const escaped = message.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>${__type.split('#').at(-1)}</Code><Message>${escaped}</Message></Error></ErrorResponse>\n`;
}
