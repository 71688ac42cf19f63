import fs from 'node:fs';
import http from 'node:http';
import type net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ReceiveMessageCommand, SendMessageCommand } from '@aws-sdk/client-sqs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { IN_FLIGHT_BYTES } from '@gateway/plugin';
import plugin, { type Connection } from '@gateway/source-sqs';
import { named } from '#source-sqs/queue';
import { loopback } from '../support/ports.js';
import { sqs } from '../support/sqs.js';
import { until, within } from '../support/until.js';
import { bodyOf, failure, held, reader, reading, validator } from './reading.js';

const source = suite('plugins/source-sqs');

const queues = await sqs();
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const unaborted = () => ({ signal: new AbortController().signal, settings: {} });

source.after(() => queues.close());

/** Creates a queue and the connection that reads it. */
function fresh(attributes: Record<string, string> = {}) {
  const queue = queues.queue(attributes);
  return { queue, connection: queues.connection(queue.name) };
}

const numbered = (count: number) => Array.from({ length: count }, (_, at) => String(at));
const empty = (queue: { name: string }) =>
  Object.values(queues.depth(queue)).every((count) => count === 0);

source('reads a queue', async () => {
  const { queue, connection } = fresh();
  await plugin.check(connection, unaborted());
  const run = reading(plugin, connection);
  await queues.send(queue, ['hello']);
  await until('the message', () => run.messages.length === 1);
  await run.stop();
  assert.equal(run.bodies(), ['hello']);
  assert.equal(
    run.states.map(({ state }) => state),
    ['connecting', 'reading'],
  );
  assert.ok(empty(queue));
});

/** Mistakes that the emulator answers as SQS does. */
const mistakes: Record<string, { connection: Partial<Connection>; message: RegExp; fix: RegExp }> =
  {
    'a queue that does not exist': {
      connection: { queue_name: 'nowhere' },
      message: /no queue "nowhere" in eu-west-1/,
      fix: /queue_name/,
    },
    'the wrong region': {
      connection: { default_region: 'us-east-2' },
      message: /no queue "\S+" in us-east-2/,
      fix: /default_region/,
    },
    'a port where nothing listens': {
      connection: { endpoint: 'http://127.0.0.1:1' },
      message: /Nothing listens on http:\/\/127\.0\.0\.1:1/,
      fix: /endpoint/,
    },
    'a host name that does not exist': {
      connection: { endpoint: 'http://queue.invalid' },
      message: /host name of http:\/\/queue\.invalid cannot be resolved/,
      fix: /endpoint/,
    },
    'TLS where there is none': {
      connection: { endpoint: queues.endpoint.replace('http:', 'https:') },
      message: /does not speak TLS/,
      fix: /http:\/\/ and https:\/\//,
    },
  };

for (const [name, { connection, message, fix }] of Object.entries(mistakes)) {
  source(`check tells of ${name}, and what to change`, async () => {
    const error = await failure(
      within(
        plugin.check({ ...fresh().connection, ...connection }, unaborted()),
        10_000,
        'check to fail',
      ),
    );
    assert.match(error.message, message);
    assert.match(error.fix, fix);
  });
}

/**
 * SQS' responses to keys that the emulator would accept;
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
 */
const refusals: Record<
  string,
  { status: number; type: string; text?: string; message: RegExp; fix: RegExp }
> = {
  'an unknown access key': {
    status: 403,
    type: 'com.amazon.coral.service#InvalidClientTokenId',
    message: /access key test-access-key is not known/,
    fix: /access_key_id/,
  },
  'an unknown access key, told by a compatible server': {
    status: 403,
    type: 'com.amazon.coral.service#UnrecognizedClientException',
    message: /access key test-access-key is not known/,
    fix: /endpoint/,
  },
  'a wrong secret key': {
    status: 403,
    type: 'com.amazon.coral.service#SignatureDoesNotMatch',
    message: /secret key does not belong to the access key test-access-key/,
    fix: /secret_key/,
  },
  'a wrong clock': {
    status: 403,
    type: 'com.amazon.coral.service#SignatureDoesNotMatch',
    text: 'Signature expired: 20261121T000000Z is now earlier than 20261121T010000Z',
    message: /refused the time/,
    fix: /clock/,
  },
  'an identity without the right': {
    status: 400,
    type: 'com.amazon.coral.service#AccessDeniedException',
    message: /access key test-access-key may not use the queue/,
    fix: /sqs:GetQueueUrl/,
  },
};

for (const [name, { status, type, text = 'no', message, fix }] of Object.entries(refusals)) {
  source(`check tells of ${name}, and what to change`, async () => {
    const server = http.createServer((_request, response) => {
      response
        .writeHead(status, { 'content-type': 'application/x-amz-json-1.0' })
        .end(JSON.stringify({ __type: type, message: text }));
    });
    const endpoint = await listening(server);
    try {
      const error = await failure(
        within(
          plugin.check({ ...queues.connection('any'), endpoint }, unaborted()),
          10_000,
          'check to fail',
        ),
      );
      assert.match(error.message, message);
      assert.match(error.fix, fix);
      assert.not.match(`${error.message} ${error.fix}`, queues.secretKey);
    } finally {
      server.close();
    }
  });
}

const URL_OF_AWS = 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders';
const ARN = 'arn:aws:sqs:eu-west-1:123456789012:orders';

source(
  'the URL or ARN of a queue names it, its account, and a region that must be that of the source',
  async () => {
    const at = (queue_name: string, more = {}) =>
      named({ default_region: 'eu-west-1', queue_name, ...more });
    for (const given of [
      URL_OF_AWS,
      ARN,
      'https://eu-west-1.queue.amazonaws.com/123456789012/orders',
      `${ARN.replace('aws', 'aws-cn')}`,
    ])
      assert.equal([at(given).queue_name, at(given).owner], ['orders', '123456789012'], given);
    assert.equal(at('orders.fifo'), { default_region: 'eu-west-1', queue_name: 'orders.fifo' });
    for (const given of [
      URL_OF_AWS,
      ARN,
      'https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/orders',
    ])
      assert.throws(
        () => at(given, { default_region: 'us-east-1' }),
        /is in eu-west-1, but default_region is us-east-1/,
      );
    assert.throws(
      () => at('http://127.0.0.1:9324/000000000000/orders'),
      /not SQS, and the source has no endpoint/,
    );
    const { queue, connection } = fresh();
    const run = reading(plugin, { ...connection, queue_name: queue.url });
    await queues.send(queue, ['hello']);
    await until('the message', () => run.messages.length === 1);
    await run.stop();
  },
);

source(
  'a queue whose messages are lost to its dead-letter queue after one receipt is told of, by check and by run',
  async () => {
    const dead = queues.queue();
    const of = (maxReceiveCount: unknown) =>
      fresh({
        RedrivePolicy: JSON.stringify({
          deadLetterTargetArn: `arn:aws:sqs:eu-west-1:000000000000:${dead.name}`,
          maxReceiveCount,
        }),
      }).connection;
    for (const count of [1, '1']) {
      const connection = of(count);
      const advice = await plugin.check(connection, unaborted());
      assert.match(advice?.message ?? '', /after one receipt \(maxReceiveCount 1\)/);
      const run = reading(plugin, connection);
      await until('it to read', () => run.states.at(-1)?.state === 'reading');
      await run.stop();
      assert.match(run.states.at(-1)?.reason ?? '', /maxReceiveCount 1.*to 5 or more/);
    }
    assert.is(await plugin.check(of(2), unaborted()), undefined);
  },
);

source('run rejects with the sentence and says so to health', async () => {
  const run = reading(plugin, { ...fresh().connection, queue_name: 'nowhere' });
  assert.match(
    (await failure(within(run.done, 10_000, 'the run to reject'))).message,
    /no queue "nowhere"/,
  );
  assert.match(run.states.at(-1)?.reason ?? '', /no queue "nowhere".*queue_name/);
  assert.is(run.states.at(-1)?.state, 'failing');
});

source('the schema takes what the plugin takes', () => {
  const valid = validator(
    JSON.parse(fs.readFileSync(file('../../plugins/source-sqs/connection.json'), 'utf8')) as object,
  );
  const connection = queues.connection('orders');
  assert.ok(valid(connection));
  assert.ok(valid({ ...connection, queue_name: 'orders.fifo' }));
  const { endpoint: _endpoint, ...without } = connection;
  assert.ok(valid(without));
  for (const field of ['access_key_id', 'secret_key', 'default_region', 'queue_name'])
    assert.not.ok(valid({ ...connection, [field]: undefined }));
  for (const queue_name of [URL_OF_AWS, ARN, 'http://127.0.0.1:9324/queue/orders.fifo'])
    assert.ok(valid({ ...connection, queue_name }));
  for (const queue_name of [
    'ftp://x/orders',
    'https://u:p@x/orders',
    'arn:aws:sns:eu-west-1:123456789012:orders',
    `${URL_OF_AWS}?a`,
    'a b',
  ])
    assert.not.ok(valid({ ...connection, queue_name }), queue_name);
  assert.not.ok(valid({ ...connection, endpoint: 'ftp://x' }));
  assert.not.ok(valid({ ...connection, extra: true }));
});

source('a message has its id, the time it was sent, its bytes and its attributes', async () => {
  const { queue, connection } = fresh();
  const before = Date.now();
  const { MessageId } = await queues.client.send(
    new SendMessageCommand({
      QueueUrl: queue.url,
      MessageBody: '{"a": 1.10, "b": "ü"}',
      MessageAttributes: {
        text: { DataType: 'String', StringValue: 'one' },
        number: { DataType: 'Number', StringValue: '9007199254740993' },
        bytes: { DataType: 'Binary', BinaryValue: Buffer.from([0, 255]) },
        'Content-Type': { DataType: 'String', StringValue: 'text/plain' },
      },
      MessageSystemAttributes: {
        AWSTraceHeader: {
          DataType: 'String',
          StringValue: 'Root=1-5759e988-bd862e3fe1be46a994272793',
        },
      },
    }),
  );
  const after = Date.now();
  const run = reading(plugin, connection);
  await until('the message', () => run.messages.length === 1);
  await run.stop();
  const [message] = run.messages;
  assert.is(message?.coordinates, MessageId);
  assert.ok(message && message.timestamp >= before - 1 && message.timestamp <= after + 1);
  assert.is(bodyOf(message), '{"a": 1.10, "b": "ü"}');
  const { 'x-amzn-trace-id': trace, ...attributes } = message.headers;
  assert.equal(attributes, {
    text: 'one',
    number: '9007199254740993',
    bytes: 'AP8=',
    'Content-Type': 'text/plain',
  });
  assert.equal([message.key, message.contentType], [null, 'text/plain']);
  assert.is(message.attributes?.['SentTimestamp'], String(message.timestamp));
  // The emulator loses this attribute; SQS does not.
  assert.ok(trace === undefined || trace === 'Root=1-5759e988-bd862e3fe1be46a994272793');
});

source('a message with the outcome later goes back at once, for another reader', async () => {
  const { queue, connection } = fresh({ VisibilityTimeout: '600' });
  await queues.send(queue, ['one']);
  const { handle, settle, waiting } = held();
  // A window of one, so that no poll is in progress: the emulator continues polls of disconnected
  // clients, which would take the message.
  const first = reading(plugin, connection, { handle, window: 1 });
  await until('the message', () => waiting().length === 1);
  const stop = first.stop();
  settle('one', 'later');
  await stop;
  await until('the message to be back', () => queues.depth(queue).ready === 1, {
    withinMs: 10_000,
  });
  const second = reading(plugin, connection);
  await until('the message again', () => second.messages.length === 1);
  await second.stop();
  assert.is(second.messages[0]?.coordinates, first.messages[0]?.coordinates);
  assert.is(second.messages[0]?.timestamp, first.messages[0]?.timestamp);
  assert.ok(empty(queue));
});

source('a refusal that no end follows does not go round and round', async () => {
  const { queue, connection } = fresh();
  await queues.send(queue, ['one']);
  const run = reading(plugin, connection, { handle: () => Promise.resolve('later') });
  await until('the message again', () => run.messages.length >= 2);
  await pause(1_500);
  await run.stop();
  assert.ok(run.messages.length < 10, `${run.messages.length} times`);
});

source('no more than the window is handed over and unsettled, by each worker', async () => {
  const { queue, connection } = fresh();
  const { handle, settle, waiting } = held();
  await queues.send(queue, numbered(60));
  const run = reading(plugin, connection, { handle, window: 20, workers: 2 });
  await until('both windows to fill', () => waiting().length === 40);
  await pause(1_000);
  assert.is(waiting().length, 40);
  while (run.messages.length < 60 || waiting().length > 0) {
    for (const body of waiting()) settle(body, 'accepted');
    await pause(5);
  }
  await run.stop();
  assert.is(new Set(run.bodies()).size, 60);
  assert.ok(empty(queue));
});

source(
  'a reader has no more in flight than its memory is meant for, and goes on when there is room again',
  async () => {
    const { queue, connection } = fresh();
    const { handle, settle, waiting } = held();
    // Half of each message is an attribute: its size counts too.
    const half = 'x'.repeat(120_000);
    const large = (n: number) => ({ body: `${n} ${half}`, attributes: { half } });
    for (let n = 0; n < 100; n++) await queues.send(queue, [large(n)]);
    const run = reading(plugin, connection, { handle, window: 1000 });
    const full = Math.ceil(IN_FLIGHT_BYTES / 240_000);
    await until('the memory to be full', () => waiting().length >= full);
    await pause(1_500);
    assert.ok(waiting().length < full + 10, `${waiting().length}: a poll beyond ${full} at most`);
    await until('the rest', () => {
      for (const body of waiting()) settle(body, 'accepted');
      return run.messages.length === 100;
    });
    await run.stop();
    assert.is(new Set(run.bodies()).size, 100);
    assert.ok(empty(queue));
  },
);

source('several readers share a queue, and each message comes once', async () => {
  const { queue, connection } = fresh();
  const runs = [reading(plugin, connection, { workers: 3 }), reading(plugin, connection)];
  await queues.send(queue, numbered(500));
  await until(
    'all messages',
    () => runs.flatMap((run) => run.messages).length >= 500 && empty(queue),
  );
  for (const run of runs) await run.stop();
  assert.is(runs.flatMap((run) => run.messages).length, 500);
  assert.is(new Set(runs.flatMap((run) => run.bodies())).size, 500);
});

source('reads a FIFO queue in its order', async () => {
  const queue = queues.queue();
  const fifo = queues.client;
  const { CreateQueueCommand } = await import('@aws-sdk/client-sqs');
  const name = `${queue.name}.fifo`;
  const { QueueUrl } = await fifo.send(
    new CreateQueueCommand({
      QueueName: name,
      Attributes: { FifoQueue: 'true', ContentBasedDeduplication: 'true' },
    }),
  );
  for (const body of numbered(25))
    await fifo.send(
      new SendMessageCommand({ QueueUrl, MessageBody: body, MessageGroupId: 'group' }),
    );
  const run = reading(plugin, queues.connection(name));
  await until('all messages', () => run.messages.length === 25 && empty({ name }));
  await run.stop();
  assert.equal(run.bodies(), numbered(25));
});

source(
  'a stop in the middle of many messages leaves none hidden: the next reader has them all at once',
  async () => {
    const { queue, connection } = fresh({ VisibilityTimeout: '600' });
    const COUNT = 300;
    const first = reading(plugin, connection, { workers: 3 });
    const sending = queues.send(queue, numbered(COUNT));
    await until('some of them', () => first.messages.length >= 50);
    await first.stop();
    await sending;
    const second = reading(plugin, connection);
    await until(
      'all of them',
      () => new Set([...first.bodies(), ...second.bodies()]).size === COUNT,
    );
    await until('the queue to be empty', () => empty(queue));
    await second.stop();
    assert.is(first.messages.length + second.messages.length, COUNT);
  },
);

source('a stop ends the poll in flight at once', async () => {
  const { connection } = fresh();
  const run = reading(plugin, connection, { workers: 4 });
  await until('to read', () => run.states.at(-1)?.state === 'reading');
  await pause(300);
  const stopMs = await run.stop();
  assert.ok(stopMs < 12_000, `${stopMs} ms, not the twenty seconds of a poll`);
});

source('a process that has stopped its source ends by itself', async () => {
  const { queue, connection } = fresh();
  const child = reader('@gateway/source-sqs', connection, { stopAfter: 1 });
  await queues.send(queue, ['one']);
  assert.is(await within(child.exited, 30_000, 'the process to end'), 0);
  assert.ok(empty(queue));
});

source('the messages of a killed reader come again', async () => {
  const { queue, connection } = fresh({ VisibilityTimeout: '2' });
  const child = reader('@gateway/source-sqs', connection, { handle: 'never' });
  await queues.send(queue, ['one']);
  await until('the child to hold it', () => child.output().includes('message'));
  child.kill('SIGKILL');
  const run = reading(plugin, connection);
  await until('the message again', () => run.messages.length === 1);
  await run.stop();
  assert.ok(empty(queue));
});

source(
  'run rejects when the queue goes away, and the next run goes on when it is back',
  async () => {
    const mine = await sqs();
    const { name } = mine.queue();
    const connection = mine.connection(name);
    const first = reading(plugin, connection);
    await until('to read', () => first.states.at(-1)?.state === 'reading');
    await mine.close();
    const error = await failure(within(first.done, 30_000, 'the run to reject'));
    assert.match(error.message, new RegExp(mine.endpoint));
    assert.is(first.states.at(-1)?.state, 'failing');
    const back = await sqs({ port: mine.port });
    try {
      const queue = back.queue();
      const second = reading(plugin, back.connection(queue.name));
      await back.send(queue, ['two']);
      await until('the next message', () => second.messages.length === 1);
      await second.stop();
    } finally {
      await back.close();
    }
  },
);

source('what was settled when the queue failed is still deleted', async () => {
  const { queue, connection } = fresh();
  let refusing = false;
  const { endpoint, close } = await between((action, response) => {
    if (!refusing || action !== 'ReceiveMessage') return false;
    response.writeHead(403).end(JSON.stringify({ __type: 'AccessDeniedException', message: 'no' }));
    return true;
  });
  try {
    const { handle, settle, waiting } = held();
    await queues.send(queue, numbered(10));
    const run = reading(plugin, { ...connection, endpoint }, { handle, window: 10 });
    await until('all messages', () => waiting().length === 10);
    refusing = true;
    for (const body of waiting()) settle(body, 'accepted');
    assert.match(
      (await failure(within(run.done, 30_000, 'the run to reject'))).message,
      /may not use the queue/,
    );
    assert.ok(empty(queue));
  } finally {
    close();
  }
});

source('deletes that fail for the moment are tried again', async () => {
  const { queue, connection } = fresh();
  let failures = 0;
  const { endpoint, close } = await between((action, response) => {
    if (action !== 'DeleteMessageBatch' || failures++ >= 5) return false;
    response.writeHead(500).end('{}');
    return true;
  });
  try {
    await queues.send(queue, ['one']);
    const run = reading(plugin, { ...connection, endpoint });
    await until('the message to be deleted', () => run.messages.length === 1 && empty(queue));
    await run.stop();
    assert.ok(failures >= 5);
  } finally {
    close();
  }
});

source(
  'polls of 150 workers leave connections for deletes, so that nothing comes twice',
  async () => {
    const { queue, connection } = fresh({ VisibilityTimeout: '5' });
    const run = reading(plugin, connection, { workers: 150 });
    try {
      // Every worker waits for a message.
      await until('the source to be read', () => run.states.at(-1)?.state === 'reading');
      await sleep(2_000);
      await queues.send(queue, numbered(20));
      await until('all to be deleted', () => run.messages.length >= 20 && empty(queue), {
        withinMs: 10_000,
      });
      await sleep(6_000);
      assert.is(run.messages.length, 20);
      assert.equal(
        run.states.map(({ state }) => state),
        ['connecting', 'reading'],
      );
      assert.equal(run.logs, []);
    } finally {
      await run.stop();
    }
  },
);

source(
  'thousands of messages are handed over, those of all workers at a time, and leave the queue',
  async () => {
    const { queue, connection } = fresh();
    const count = 5_000;
    await queues.send(queue, Array<string>(count).fill('x'.repeat(1000)));
    let [seen, began, ended] = [0, 0, 0];
    let [underWay, most] = [0, 0];
    const run = reading(plugin, connection, {
      workers: 4,
      handle: async () => {
        began ||= performance.now();
        most = Math.max(most, ++underWay);
        if (++seen === count) ended = performance.now();
        await pause(20);
        underWay--;
        return 'accepted';
      },
    });
    await until('all messages', () => seen === count && empty(queue), { withinMs: 60_000 });
    await run.stop();
    console.log(
      `${Math.round(count / ((ended - began) / 1000))} messages of 1 kB a second, at most ${most} at a time, the emulator in the same process`,
    );
    // A worker that requests one message at a time, or waits for earlier ones, holds ten at most.
    assert.ok(most > 40, `${most} at a time`);
  },
);

source('the queue of a reader that is gone is left as it was found', async () => {
  const { queue, connection } = fresh();
  const run = reading(plugin, connection);
  await run.stop();
  await queues.send(queue, ['one']);
  const { Messages = [] } = await queues.client.send(
    new ReceiveMessageCommand({ QueueUrl: queue.url, WaitTimeSeconds: 0 }),
  );
  assert.is(Messages[0]?.Body, 'one');
});

source(
  'the lag is what waits in the queue, without what is delayed or out with a reader',
  async () => {
    const { queue, connection } = fresh({ VisibilityTimeout: '600' });
    await queues.send(queue, numbered(25));
    await queues.client.send(
      new ReceiveMessageCommand({ QueueUrl: queue.url, MaxNumberOfMessages: 5 }),
    );
    for (let n = 0; n < 3; n++)
      await queues.client.send(
        new SendMessageCommand({ QueueUrl: queue.url, MessageBody: 'later', DelaySeconds: 600 }),
      );
    const { handle, settle, waiting } = held();
    const run = reading(plugin, connection, { wantsLag: true, window: 1, handle });
    const waits = await until('the lag', () => run.lags['']);
    assert.ok(waits === 20 || waits === 19, `${waits} are waiting`);
    await until('the one message of the window', () => waiting().length === 1);
    const stopping = run.stop();
    settle(waiting()[0]!, 'accepted');
    await stopping;
    assert.equal(run.lags, { '': null });
  },
);

source(
  'a queue that does not tell how much is waiting is read all the same, and its lag is not known',
  async () => {
    const { queue, connection } = fresh();
    let asked = 0;
    const server = await between((action, response) => {
      // The first request reads the visibility timeout.
      if (action !== 'GetQueueAttributes' || asked++ === 0) return false;
      response
        .writeHead(403, { 'content-type': 'application/x-amz-json-1.0' })
        .end(JSON.stringify({ __type: 'com.amazonaws.sqs#AccessDenied', message: 'no' }));
      return true;
    });
    const run = reading(plugin, { ...connection, endpoint: server.endpoint }, { wantsLag: true });
    await until('the refusal', () =>
      run.logs.some(({ sentence }) => sentence.includes('the number of waiting messages')),
    );
    await queues.send(queue, ['hello']);
    await until('the message', () => run.messages.length === 1);
    await run.stop();
    server.close();
    assert.equal(run.lags, { '': null });
  },
);

source.run();

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * A server between the plugin and the queues: it forwards everything that the test does not answer.
 * @param answers receives the SQS action; returns true if it has answered
 */
async function between(
  answers: (action: string, response: http.ServerResponse) => boolean,
): Promise<{ endpoint: string; close(): void }> {
  const server = http.createServer((request, response) => {
    const action = String(request.headers['x-amz-target']).replace('AmazonSQS.', '');
    if (answers(action, response)) return;
    const through = http.request(
      queues.endpoint,
      { method: request.method, headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      },
    );
    through.on('error', () => response.destroy());
    request.pipe(through);
  });
  return {
    endpoint: await listening(server),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function listening(server: net.Server): Promise<string> {
  return `http://127.0.0.1:${await loopback(server)}`;
}
