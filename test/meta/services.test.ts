import crypto from 'node:crypto';
import * as sqsCommands from '@aws-sdk/client-sqs';
import type { KafkaConfig } from 'kafkajs';
import pg from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { database } from '../support/database.js';
import { endpoint } from '../support/endpoint.js';
import { kafka, randomName } from '../support/kafka.js';
import { prometheus, promtool } from '../support/prometheus.js';
import { redis } from '../support/redis.js';
import { own } from '../support/services.js';
import { sqs } from '../support/sqs.js';
import { until, within } from '../support/until.js';

const services = suite('meta/services');

services(
  'Postgres is at least 15, keeps fsync on, and gives each test a database of its own',
  async () => {
    const [first, second] = await Promise.all([database(), database()]);
    const [settings] = await first.rows(
      `select current_setting('server_version_num')::int as version, current_setting('fsync') as fsync`,
    );
    assert.ok(settings?.['version'] >= 150_000, `version ${settings?.['version']}`);
    assert.is(settings?.['fsync'], 'on');
    await first.rows('create table only_here ()');
    assert.equal(await second.rows(`select from pg_tables where tablename = 'only_here'`), []);
    await Promise.all([first.close(), second.close()]);
  },
);

services('a database is cloned from a template that is migrated once', async () => {
  let migrations = 0;
  const marker = `m${crypto.randomBytes(4).toString('hex')}`;
  const migrate = async (url: string) => {
    migrations++;
    const client = new pg.Client(url);
    await client.connect();
    await client.query('create table if not exists marked (marker text)');
    await client.query('insert into marked values ($1)', [marker]);
    await client.end();
  };
  const clones = await Promise.all([
    database({ migrate }),
    database({ migrate }),
    database({ migrate }),
  ]);
  assert.ok(migrations <= 1, `${migrations} migrations`);
  for (const clone of clones) assert.is((await clone.rows('select * from marked')).length, 1);
  await Promise.all(clones.map((clone) => clone.close()));
});

services('closing a database names who is still connected', async () => {
  const left = await database();
  const client = new pg.Client({
    connectionString: left.url,
    application_name: 'the one that leaks',
  });
  client.on('error', () => undefined);
  await client.connect();
  const closing = await left.close().then(
    () => 'closed',
    (error: Error) => error.message,
  );
  assert.match(closing, /the one that leaks/);
});

services('Redis answers, and a database of it is nobody else’s', async () => {
  const [first, second] = await Promise.all([redis(), redis()]);
  assert.is(await first.client.ping(), 'PONG');
  await first.client.set('key', 'value');
  assert.is(await second.client.get('key'), null);
  await Promise.all([first.close(), second.close()]);
});

services(
  'Kafka produces and consumes over all four listeners, with PLAIN and both kinds of SCRAM',
  async () => {
    const broker = await kafka();
    const { plaintext, saslPlaintext, saslSsl, ssl } = broker.listeners;
    const tls = { ssl: { ca: [broker.ca] } };
    const plain = { sasl: { mechanism: 'plain', ...broker.users.plain } } as const;
    const scram256 = { sasl: { mechanism: 'scram-sha-256', ...broker.users.scram } } as const;
    const scram512 = { sasl: { mechanism: 'scram-sha-512', ...broker.users.scram } } as const;
    const ways: Partial<KafkaConfig>[] = [
      { brokers: [plaintext] },
      { brokers: [ssl], ...tls },
      ...[plain, scram256, scram512].flatMap((login) => [
        { brokers: [saslPlaintext], ...login },
        { brokers: [saslSsl], ...login, ...tls },
      ]),
    ];
    const topic = await broker.topic({ partitions: 2 });
    await broker.produce(topic, [
      { value: 'left', partition: 0 },
      { value: 'right', partition: 1 },
    ]);
    await Promise.all(
      ways.map(async (way) => {
        const consumer = broker
          .client(way)
          .consumer({ groupId: randomName('group'), maxWaitTimeInMs: 100 });
        const seen: string[] = [];
        await consumer.connect();
        await consumer.subscribe({ topic, fromBeginning: true });
        await consumer.run({
          eachMessage: async ({ message }) => void seen.push(String(message.value)),
        });
        await until(
          `two messages over ${way.brokers} with ${way.sasl?.mechanism}`,
          () => seen.length === 2,
        );
        await within(consumer.disconnect(), 10_000, 'a consumer to leave');
        assert.equal(seen.sort(), ['left', 'right']);
      }),
    );
    assert.equal(await broker.ends(topic), [1, 1]);
    await broker.close();
  },
);

services('SQS sends, receives and deletes', async () => {
  const queues = await sqs();
  const queue = queues.queue({ VisibilityTimeout: '30' });
  await queues.send(queue, ['one', { body: 'two', attributes: { kind: 'second' } }]);
  assert.equal(queues.depth(queue), { ready: 2, inFlight: 0, delayed: 0 });
  const { Messages = [] } = await queues.client.send(
    new sqsCommands.ReceiveMessageCommand({
      QueueUrl: queue.url,
      MaxNumberOfMessages: 10,
      MessageAttributeNames: ['All'],
    }),
  );
  assert.equal(
    Messages.map((message) => [message.Body, message.MessageAttributes?.['kind']?.StringValue]),
    [
      ['one', undefined],
      ['two', 'second'],
    ],
  );
  for (const { ReceiptHandle } of Messages)
    await queues.client.send(
      new sqsCommands.DeleteMessageCommand({ QueueUrl: queue.url, ReceiptHandle }),
    );
  assert.equal(queues.depth(queue), { ready: 0, inFlight: 0, delayed: 0 });
  await queues.close();
});

services('an endpoint records the raw request and answers as it is told', async () => {
  const receiver = await endpoint({
    answer: [
      { status: 500, body: 'no' },
      { status: 201, headers: { 'x-seen': 'yes' } },
      { close: true },
    ],
  });
  const post = () =>
    fetch(`${receiver.url}/path?query`, {
      method: 'POST',
      body: Buffer.from([0, 255]),
      headers: { 'X-Custom': 'kept' },
    });
  const first = await post();
  assert.equal([first.status, await first.text()], [500, 'no']);
  const second = await post();
  assert.equal([second.status, second.headers.get('x-seen')], [201, 'yes']);
  assert.is(await post().catch(() => 'closed'), 'closed');
  receiver.answer({ hang: true });
  const hanging = post().catch(() => 'hung');
  const requests = await receiver.received(4);
  assert.equal(
    [requests[0]?.method, requests[0]?.url, requests[0]?.headers['x-custom']],
    ['POST', '/path?query', 'kept'],
  );
  assert.equal([...(requests[0]?.body ?? [])], [0, 255]);
  await receiver.close();
  assert.is(await hanging, 'hung');
});

services(
  'a Prometheus of one’s own scrapes and answers queries, and promtool knows what is wrong with an exposition',
  async () => {
    const receiver = await endpoint({
      answer: {
        body: 'answers_total 42\n',
        headers: { 'content-type': 'text/plain; version=0.0.4' },
      },
    });
    const target = {
      job_name: 'one',
      scrape_interval: '1s',
      static_configs: [{ targets: [`127.0.0.1:${receiver.port}`] }],
    };
    const server = await prometheus({ scrape_configs: [target] });
    const [row] = await until('a scrape', async () => {
      const rows = await server.query('answers_total');
      return rows.length > 0 && rows;
    });
    assert.equal([row?.value, row?.labels['job']], [42, 'one']);
    const refused = await server.query('sum(').then(
      () => 'rows',
      (error: Error) => error.message,
    );
    assert.match(refused, /parse error/);
    const { code, output } = await promtool(['check', 'metrics'], { input: 'answers 42\n' });
    assert.equal([code, output.trim()], [3, 'answers no help text']);
    await Promise.all([server.close(), receiver.close()]);
  },
);

services(
  'a Postgres and a Redis of one’s own come back on their port after a crash, Postgres with all that was committed',
  async () => {
    const [postgres, kv] = await Promise.all([own.postgres(), own.redis()]);
    const db = await database({ postgres });
    await db.rows('create table kept as select 1 as one');
    const { client } = await redis({ server: kv });
    await client.set('key', 'value');
    await Promise.all([postgres.crash(), kv.crash()]);
    await Promise.all([postgres.start(), kv.start()]);
    const survivor = new pg.Client(db.url);
    await survivor.connect();
    assert.equal((await survivor.query('select one from kept')).rows, [{ one: 1 }]);
    await survivor.end();
    assert.is(
      await until('Redis to be empty', async () => (await client.get('key')) === null),
      true,
    );
    client.disconnect();
    await Promise.all([postgres.close(), kv.close()]);
  },
);

services.run();
