import {
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { networkInterfaces } from 'node:os';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startQueue, type QueueEmulator } from '#dev/services/queue';
import { answers, freePort } from '../../support/ports.js';
import { until } from '../../support/until.js';

const queue = suite('dev/services/queue');

const opened = async () => startQueue(await freePort());

function client({ endpoint }: QueueEmulator): SQSClient {
  return new SQSClient({
    endpoint,
    region: 'eu-west-1',
    credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
  });
}

queue(
  'it takes the query protocol that curl speaks, and gives the message to a client of SQS byte for byte',
  async () => {
    const it = await opened();
    const sqs = client(it);
    const message = '{"text":"ä & <b> + % \\" = 1.10"}';
    const post = (fields: Record<string, string>) =>
      fetch(it.endpoint, { method: 'POST', body: new URLSearchParams(fields) });
    const sent = await post({ Action: 'SendMessage', QueueUrl: it.url, MessageBody: message });
    assert.is(sent.status, 200);
    const [, id] = /<MessageId>([0-9a-f-]{36})<\/MessageId>/.exec(await sent.text()) ?? [];
    const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl: it.url }));
    assert.is(Messages[0]?.Body, message);
    assert.is(Messages[0]?.MessageId, id);
    const refused = await post({
      Action: 'SendMessage',
      QueueUrl: `${it.url}-other`,
      MessageBody: 'x',
    });
    assert.is(refused.status, 400);
    assert.match(await refused.text(), '<Code>QueueDoesNotExist</Code>');
    sqs.destroy();
    await it.close();
  },
);

queue(
  'a client of SQS sends, receives and deletes by the URL that is shown, whatever name of this machine it has',
  async () => {
    const it = await opened();
    const sqs = client(it);
    const byName = it.url.replace('127.0.0.1', 'localhost');
    await sqs.send(new SendMessageCommand({ QueueUrl: it.url, MessageBody: 'one' }));
    const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl: it.url }));
    await sqs.send(
      new DeleteMessageCommand({ QueueUrl: it.url, ReceiptHandle: Messages[0]?.ReceiptHandle }),
    );
    const answer = await fetch(it.endpoint, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': 'AmazonSQS.GetQueueAttributes',
      },
      body: JSON.stringify({
        QueueUrl: byName,
        AttributeNames: ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'],
      }),
    });
    const { Attributes } = (await answer.json()) as { Attributes: Record<string, string> };
    assert.equal(Attributes, {
      ApproximateNumberOfMessages: '0',
      ApproximateNumberOfMessagesNotVisible: '0',
    });
    sqs.destroy();
    await it.close();
  },
);

queue(
  'a message that was meant for a poller which has gone away is seen by the next one at once',
  async () => {
    const it = await opened();
    const sqs = client(it);
    const leaving = new AbortController();
    const poll = sqs
      .send(new ReceiveMessageCommand({ QueueUrl: it.url, WaitTimeSeconds: 20 }), {
        abortSignal: leaving.signal,
      })
      .catch(() => 'gone');
    await new Promise((resolve) => setTimeout(resolve, 300));
    leaving.abort();
    assert.is(await poll, 'gone');
    await it.send('late');
    const received = await until(
      'the message to be visible',
      async () => (await sqs.send(new ReceiveMessageCommand({ QueueUrl: it.url }))).Messages,
      { withinMs: 15_000 },
    );
    assert.is(received[0]?.Body, 'late');
    sqs.destroy();
    await it.close();
  },
);

queue('it listens on loopback alone', async () => {
  const it = await opened();
  const port = Number(new URL(it.endpoint).port);
  assert.ok(await answers(port));
  const others = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  for (const { address, internal, family } of others)
    if (!internal && family === 'IPv4') assert.not.ok(await answers(port, address), address);
  await it.close();
});

queue.run();
