import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import kafkajs, { Partitioners } from 'kafkajs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { SourceContext } from '@gateway/plugin';
import plugin, { type Connection } from '@gateway/source-kafka';
import { withCluster } from '#source-kafka/client';
import { idToCommit } from '#source-kafka/topic-ids';
import { offsetsReset } from '#source-kafka/watch';
import { kafka, type KafkaBroker, randomName } from '../support/kafka.js';
import { own } from '../support/services.js';
import { type KafkaServer } from '../support/start/kafka.js';
import { together } from '../support/together.js';
import { until, within } from '../support/until.js';
import { bodyOf, failure, held, reader, type Reading, reading, validator } from './reading.js';

const source = suite('plugins/source-kafka');
/** Tests that wait for sessions, polls and brokers, each in a separate group. */
const beside = together(source);
/** Tests that stop and kill the broker: sequential, concurrent with the rest. */
let before: Promise<unknown> = Promise.resolve();
const inTurn = (test: () => Promise<void>) => () => {
  const done = before.then(test);
  before = done.catch(() => undefined);
  return done;
};

const broker = await kafka();
const { listeners, users, ca } = broker;
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** A broker to stop and kill, started on first use. */
let started: Promise<{ server: KafkaServer; mine: KafkaBroker }> | undefined;
const ownBroker = () =>
  (started ??= own.kafka().then(async (server) => ({ server, mine: await kafka({ server }) })));

source.after(async () => {
  await broker.close();
  if (!started) return;
  const { server, mine } = await started;
  await mine.close();
  await server.close();
});

/** Creates a topic and the connection that reads it. */
async function fresh(
  partitions = 1,
  configEntries: Record<string, string> = {},
): Promise<Connection & { topic_name: string; consumer_group_id: string }> {
  return {
    brokers: [listeners.plaintext],
    topic_name: await broker.topic({ partitions, configEntries }),
    consumer_group_id: randomName('group'),
  };
}

const numbered = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => String(from + at));
const inPartition = (partition: number, values: string[]) =>
  values.map((value) => ({ partition, value }));

const logins: Record<string, Omit<Connection, 'topic_name'>> = {
  'no login, no TLS': { brokers: [listeners.plaintext] },
  PLAIN: { brokers: [listeners.saslPlaintext], auth: { type: 'plain', ...users.plain } },
  'SCRAM-SHA-256': {
    brokers: [listeners.saslPlaintext],
    auth: { type: 'scram', hash: 'SHA256', ...users.scram },
  },
  'SCRAM-SHA-512': {
    brokers: [listeners.saslPlaintext],
    auth: { type: 'scram', hash: 'SHA512', ...users.scram },
  },
  TLS: { brokers: [listeners.ssl], auth: { tls: true, ca } },
  'PLAIN over TLS': {
    brokers: [listeners.saslSsl],
    auth: { type: 'plain', ...users.plain, tls: true, ca },
  },
  'SCRAM-SHA-256 over TLS': {
    brokers: [listeners.saslSsl],
    auth: { type: 'scram', hash: 'SHA256', ...users.scram, tls: true, ca },
  },
  'SCRAM-SHA-512 over TLS': {
    brokers: [listeners.saslSsl],
    auth: { type: 'scram', hash: 'SHA512', ...users.scram, tls: true, ca },
  },
};

for (const [name, login] of Object.entries(logins)) {
  beside(`reads with ${name}`, async () => {
    const connection = { ...(await fresh()), ...login };
    await plugin.check(connection, { signal: new AbortController().signal, settings: {} });
    await broker.produce(connection.topic_name, ['hello']);
    const run = reading(plugin, connection);
    await until('the message', () => run.messages.length === 1);
    await run.stop();
    assert.equal(run.bodies(), ['hello']);
    assert.equal(
      run.states.map(({ state }) => state),
      ['connecting', 'reading'],
    );
  });
}

beside('a broker of the list that is down does not matter', async () => {
  const connection = { ...(await fresh()), brokers: ['127.0.0.1:1', listeners.plaintext] };
  await plugin.check(connection, { signal: new AbortController().signal, settings: {} });
  await broker.produce(connection.topic_name, ['hello']);
  const run = reading(plugin, connection);
  await until('the message', () => run.messages.length === 1);
  await run.stop();
});

/** Reads like an agent, which calls `run` again when it rejects. */
function readingAgain(connection: Connection, options: Parameters<typeof reading>[2] = {}) {
  const runs: Reading[] = [];
  let isOver = false;
  const start = () => {
    const run = reading(plugin, connection, options);
    runs.push(run);
    run.done.catch(() => isOver || setTimeout(start, 500));
  };
  start();
  return {
    messages: () => runs.flatMap((run) => run.messages),
    bodies: () => runs.flatMap((run) => run.bodies()),
    stop: () => {
      isOver = true;
      return Promise.all(runs.map((run) => run.stop().catch(() => undefined)));
    },
  };
}

async function createAnew(topic: string): Promise<void> {
  const admin = broker.client().admin();
  await admin.connect();
  await admin.deleteTopics({ topics: [topic] });
  await until('it to be gone', async () => !(await admin.listTopics()).includes(topic));
  await until('it to be anew', () =>
    admin.createTopics({ waitForLeaders: true, topics: [{ topic }] }).catch(() => false),
  );
  await admin.disconnect();
}

beside(
  'a topic that is deleted and created anew is read from its first message, with the same coordinates',
  async () => {
    // Clients that know the topic fail once it is deleted.
    const [first, second] = [await kafka(), await kafka()];
    const connection = {
      brokers: [listeners.plaintext],
      topic_name: await first.topic(),
      consumer_group_id: randomName('group'),
    };
    const { topic_name: topic } = connection;
    const timestamp = '1700000000123';
    const at = (values: string[]) => values.map((value) => ({ value, timestamp }));
    await first.produce(topic, at(numbered(3)));
    const run = readingAgain(connection);
    await until('the first', () => run.bodies().length === 3);
    await until(
      'their commit',
      async () => (await first.committed(connection.consumer_group_id, topic))[0] === 3,
    );
    await first.close();
    await createAnew(topic);
    await second.produce(topic, at(numbered(3, 3)));
    await second.close();
    await until('the others', () => new Set(run.bodies()).size === 6);
    await run.stop();
    const placeOf = new Map(
      run.messages().map((message) => [bodyOf(message), message.coordinates] as const),
    );
    for (const n of [0, 1, 2]) assert.is(placeOf.get(String(n)), placeOf.get(String(n + 3)));
  },
);

beside(
  'a topic that is created anew and has grown past the old offset, while its reader waits, is read from its first message',
  async () => {
    const [first, second] = [await kafka(), await kafka()];
    const connection = {
      brokers: [listeners.plaintext],
      topic_name: await first.topic(),
      consumer_group_id: randomName('group'),
    };
    const { topic_name: topic, consumer_group_id: group } = connection;
    await first.produce(topic, numbered(4));
    await first.close();
    let settle: () => void = () => {};
    const settled = new Promise<'accepted'>((resolve) => (settle = () => resolve('accepted')));
    // Nothing is committed before: no offset decreases when the brokers delete the topic's offsets.
    const run = readingAgain(connection, { window: 3, handle: () => settled });
    await until('a full window', () => run.bodies().length === 3);
    await createAnew(topic);
    await second.produce(topic, numbered(12, 4));
    settle();
    await until('all of the new topic', () => new Set(run.bodies()).size === 16);
    await until('the commit', async () => (await second.committed(group, topic))[0] === 12);
    await second.close();
    await run.stop();
  },
);

beside('an offset that was committed for an earlier topic of the same name is none', async () => {
  const [first, second] = [await kafka(), await kafka()];
  const connection = {
    brokers: [listeners.plaintext],
    topic_name: await first.topic(),
    consumer_group_id: randomName('group'),
  };
  const { topic_name: topic, consumer_group_id: groupId } = connection;
  await first.produce(topic, numbered(2));
  const before = readingAgain(connection);
  await until('the first commit', async () => (await first.committed(groupId, topic))[0] === 2);
  await before.stop();
  await first.close();
  await createAnew(topic);
  await second.produce(topic, numbered(4, 2));
  // The commit of a member of the previous topic that has not noticed the deletion.
  const partitions = [{ partition: 0, offset: '2', metadata: idToCommit('another-topic') }];
  await withCluster(
    connection,
    { clientId: 'late', signal: AbortSignal.timeout(20_000) },
    async (cluster) => {
      await cluster.connect();
      const coordinator = (await cluster.findGroupCoordinator({ groupId })) as unknown as {
        offsetCommit(of: object): Promise<void>;
      };
      await coordinator.offsetCommit({
        groupId,
        groupGenerationId: -1,
        memberId: '',
        topics: [{ topic, partitions }],
      });
    },
  );
  const run = readingAgain(connection, { wantsLag: true });
  await until('all of the new topic', () => run.bodies().length >= 4);
  await second.close();
  await run.stop();
  assert.equal(run.bodies(), numbered(4, 2));
});

beside(
  'a partition of a new topic that has no message yet does not restart the source again and again',
  async () => {
    const setup = await kafka();
    const connection = {
      brokers: [listeners.plaintext],
      topic_name: await setup.topic({ partitions: 2 }),
      consumer_group_id: randomName('group'),
    };
    const { topic_name: topic, consumer_group_id: groupId } = connection;
    const admin = broker.client().admin();
    await admin.connect();
    // The reset by a member that finds its offset beyond the end of a recreated topic.
    await admin.setOffsets({
      groupId,
      topic,
      partitions: [0, 1].map((partition) => ({ partition, offset: '-2' })),
    });
    await admin.disconnect();
    await setup.produce(topic, [{ partition: 0, value: '0' }]);
    const run = reading(plugin, connection);
    await Promise.race([until('the message', () => run.messages.length === 1), run.done]);
    await until('its commit', async () => (await setup.committed(groupId, topic))[0] === 1);
    await setup.close();
    await run.stop();
  },
);

beside(
  'what this process has committed and the broker has forgotten is a reset, although nobody looked in between',
  async () => {
    const connection = {
      brokers: [listeners.plaintext],
      topic_name: await broker.topic(),
      consumer_group_id: randomName('group'),
    };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const context = {
      sourceId: 'source-1',
      clientId: randomName('client'),
      log,
    } as unknown as SourceContext;
    const { message } = await failure(
      offsetsReset(
        connection,
        context,
        [connection.topic_name],
        new Map([[`${connection.topic_name}/0` as const, 3n]]),
        AbortSignal.timeout(20_000),
      ),
    );
    assert.match(
      message,
      /offset of topic-\w+\/0 of the consumer group "group-\w+" went back from 3 to -1: the topic was created anew/,
    );
  },
);

const { host, nobody } = { host: '127.0.0.1', nobody: { username: 'scram', password: 'not-it' } };

/** Mistakes, each with the expected sentence and fix. */
const mistakes: Record<string, { connection: Partial<Connection>; message: RegExp; fix: RegExp }> =
  {
    'a wrong password': {
      connection: {
        brokers: [listeners.saslPlaintext],
        auth: { type: 'plain', username: 'plain', password: 'not-it' },
      },
      message: /refused the user "plain" \(PLAIN\)/,
      fix: /Check user name and password/,
    },
    'a wrong SCRAM password': {
      connection: {
        brokers: [listeners.saslPlaintext],
        auth: { type: 'scram', hash: 'SHA512', ...nobody },
      },
      message: /refused the user "scram" \(SCRAM-SHA-512\)/,
      fix: /auth\.hash/,
    },
    'a certificate of an unknown authority': {
      connection: { brokers: [listeners.ssl], auth: { tls: true } },
      message: /certificate of \S+ is not signed by a public authority/,
      fix: /auth\.ca/,
    },
    'an authority that is no certificate': {
      connection: {
        brokers: [listeners.ssl],
        auth: { tls: true, ca: '-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----' },
      },
      message: /auth\.ca is not a PEM certificate/,
      fix: /BEGIN CERTIFICATE/,
    },
    'no login at a port that wants one': {
      connection: { brokers: [listeners.saslPlaintext] },
      message: /closed the connection/,
      fix: /auth\.type/,
    },
    'no login at a TLS port that wants one': {
      connection: { brokers: [listeners.saslSsl], auth: { tls: true, ca } },
      message: /closed the connection/,
      fix: /want a login: set auth\.type/,
    },
    'a login at a port that wants none': {
      connection: { auth: { type: 'plain', ...users.plain } },
      message: /does not ask for a user name/,
      fix: /auth\.type/,
    },
    'no TLS at a TLS port': {
      connection: { brokers: [listeners.ssl] },
      message: /does not answer as a Kafka broker does/,
      fix: /auth\.tls/,
    },
    'no TLS at a TLS port with a login': {
      connection: { brokers: [listeners.saslSsl], auth: { type: 'plain', ...users.plain } },
      message: /does not answer as a Kafka broker does/,
      fix: /auth\.tls/,
    },
    'TLS at a port without it': {
      connection: { auth: { tls: true, ca } },
      message: /does not speak TLS/,
      fix: /auth\.tls to false/,
    },
    'a topic that does not exist': {
      connection: { topic_name: 'nowhere' },
      message: /no topic "nowhere" on 127\.0\.0\.1:\d+ that the anonymous user may see/,
      fix: /topic_name/,
    },
    'a port where nothing listens': {
      connection: { brokers: [`${host}:1`] },
      message: /Nothing listens on 127\.0\.0\.1:1/,
      fix: /brokers/,
    },
    'a host name that does not exist': {
      connection: { brokers: ['broker.invalid:9092'] },
      message: /host name of broker\.invalid:9092 cannot be resolved/,
      fix: /brokers/,
    },
    'SCRAM without a hash': {
      connection: { auth: { type: 'scram', ...users.scram } },
      message: /auth\.hash is missing/,
      fix: /SHA256/,
    },
    'a type without a password': {
      connection: { auth: { type: 'plain', username: 'plain' } },
      message: /auth\.password is missing/,
      fix: /Give both/,
    },
    'a password without a type': {
      connection: { auth: { ...users.plain } },
      message: /no auth\.type/,
      fix: /plain/,
    },
    'an authority without TLS': {
      connection: { auth: { ca } },
      message: /auth\.tls is off/,
      fix: /auth\.tls/,
    },
  };

source('check waits a moment for a topic that is only just created', async () => {
  const topic_name = randomName('new');
  const connection = { brokers: [listeners.plaintext], topic_name };
  const checked = plugin.check(connection, { signal: new AbortController().signal, settings: {} });
  const admin = broker.client().admin();
  await admin.connect();
  await delay(300);
  await admin.createTopics({ topics: [{ topic: topic_name }] });
  await admin.disconnect();
  await checked;
});

for (const [name, { connection, message, fix }] of Object.entries(mistakes)) {
  source(`check tells of ${name}, and what to change`, async () => {
    const error = await failure(
      within(
        plugin.check(
          { brokers: [listeners.plaintext], topic_name: 'any', ...connection },
          { signal: new AbortController().signal, settings: {} },
        ),
        10_000,
        'check to fail',
      ),
    );
    assert.match(error.message, message);
    assert.match(error.fix, fix);
    for (const secret of ['not-it', users.plain.password, users.scram.password])
      assert.not.match(`${error.message} ${error.fix}`, secret);
  });
}

source('run rejects with the sentence and says so to health', async () => {
  const connection = mistakes['a wrong SCRAM password']?.connection;
  const run = reading(plugin, { brokers: [], topic_name: 'any', ...connection });
  const error = await failure(within(run.done, 20_000, 'the run to reject'));
  assert.match(error.message, /refused the user "scram"/);
  assert.is(run.states.at(-1)?.state, 'failing');
  assert.match(
    run.states.at(-1)?.reason ?? '',
    /refused the user "scram".*Check user name and password/,
  );
  assert.not.match(JSON.stringify(run.logs), 'not-it');
});

source('run rejects when the topic does not exist, and does not create it', async () => {
  const topic_name = randomName('topic');
  const error = await failure(
    within(
      reading(plugin, { brokers: [listeners.plaintext], topic_name }).done,
      20_000,
      'the run to reject',
    ),
  );
  assert.match(error.message, /does not exist/);
  const admin = broker.client().admin();
  await admin.connect();
  assert.not.ok((await admin.listTopics()).includes(topic_name));
  await admin.disconnect();
});

source(
  'reads Snappy as clients write it that do not put the frame of the Java client around it',
  async () => {
    const connection = await fresh();
    const { CompressionCodecs, CompressionTypes } = kafkajs;
    CompressionCodecs[CompressionTypes.Snappy] = () => ({
      compress: ({ buffer }: { buffer: Buffer }) => Promise.resolve(literals(buffer)),
    });
    const producer = broker
      .client()
      .producer({ createPartitioner: Partitioners.DefaultPartitioner });
    await producer.connect();
    await producer.send({
      topic: connection.topic_name,
      compression: CompressionTypes.Snappy,
      messages: [{ value: 'one' }, { value: 'two' }],
    });
    await producer.disconnect();
    const run = reading(plugin, connection);
    await until('the messages', () => run.messages.length === 2);
    await run.stop();
    assert.equal(run.bodies(), ['one', 'two']);
  },
);

beside(
  'without a group id each source gets every message, in whichever agents it is read',
  async () => {
    const { consumer_group_id: _, ...connection } = await fresh(2);
    const [shared, alone] = [randomName('source'), randomName('source')];
    await plugin.check(connection, { signal: new AbortController().signal, settings: {} });
    const agents = [shared, shared].map((sourceId) =>
      reading(plugin, { ...connection, consumer_group_id: '' }, { sourceId }),
    );
    const other = reading(plugin, connection, { sourceId: alone });
    const runs = [...agents, other];
    await until('all to read', () =>
      runs.every(({ states }) => states.at(-1)?.state === 'reading'),
    );
    await broker.produce(connection.topic_name, [
      ...inPartition(0, numbered(50)),
      ...inPartition(1, numbered(50, 50)),
    ]);
    const seen = (of: typeof runs) => new Set(of.flatMap((run) => run.bodies()));
    await until(
      'every message of both sources',
      () => seen(agents).size === 100 && seen([other]).size === 100,
    );
    await Promise.all(runs.map((run) => run.stop()));
    for (const id of [shared, alone])
      assert.equal(await broker.committed(`gateway-${id}`, connection.topic_name), [50, 50]);
    for (const agent of agents)
      assert.ok(agent.messages.length > 0, 'the agents of one source share its messages');
  },
);

source('the schema takes what the plugin takes', () => {
  const valid = validator(
    JSON.parse(
      fs.readFileSync(file('../../plugins/source-kafka/connection.json'), 'utf8'),
    ) as object,
  );
  for (const [name, login] of Object.entries(logins))
    assert.ok(valid({ topic_name: 'orders', ...login }), name);
  assert.ok(valid({ topic_name: 'orders', consumer_group_id: '', brokers: ['a:9092', 'b:9092'] }));
  for (const name of [
    'SCRAM without a hash',
    'a type without a password',
    'a password without a type',
    'an authority without TLS',
  ]) {
    assert.not.ok(
      valid({ topic_name: 'orders', brokers: ['a:9092'], ...mistakes[name]?.connection }),
      name,
    );
  }
  assert.not.ok(valid({ topic_name: 'orders', brokers: [] }));
  assert.not.ok(valid({ topic_name: 'orders', brokers: ['no-port'] }));
  assert.not.ok(valid({ topic_name: 'orders', brokers: ['a:9092'], extra: true }));
  assert.not.ok(valid({ brokers: ['a:9092'] }));
});

beside('a message has the place, time, bytes, headers and key of its record', async () => {
  const connection = await fresh();
  await broker.produce(connection.topic_name, [
    {
      value: Buffer.from([0, 255, 10]),
      timestamp: '1700000000123',
      headers: {
        traceparent: '00-1',
        twice: ['one', 'two'],
        umlaut: Buffer.from('ü'),
        binary: Buffer.from([0xff, 0xfe]),
        'content-type': 'text/plain',
      },
    },
    { key: 'deleted', value: null },
  ]);
  const run = reading(plugin, connection);
  await until('both messages', () => run.messages.length === 2);
  await run.stop();
  const [first, tombstone] = run.messages;
  assert.is(first?.coordinates, `${connection.topic_name}/0/0`);
  assert.is(first?.timestamp, 1_700_000_000_123);
  assert.equal([...(first?.body ?? [])], [0, 255, 10]);
  assert.equal(first?.headers, {
    traceparent: '00-1',
    twice: 'two',
    umlaut: 'ü',
    'content-type': 'text/plain',
  });
  assert.equal([first?.key, first?.contentType], [null, 'text/plain']);
  const place = { topic: connection.topic_name, partition: '0', offset: '0' };
  assert.equal(first?.attributes, place);
  assert.equal(
    [String(tombstone?.key && Buffer.from(tombstone.key)), tombstone?.contentType],
    ['deleted', undefined],
  );
  assert.is(tombstone?.coordinates, `${connection.topic_name}/0/1`);
  assert.is(tombstone?.body.length, 0);
});

beside('offsets advance over the settled prefix, whatever the order of settling', async () => {
  const connection = await fresh();
  const { handle, settle, waiting } = held();
  await broker.produce(connection.topic_name, inPartition(0, numbered(10)));
  const run = reading(plugin, connection, { handle });
  await until('all messages', () => waiting().length === 10);
  for (const body of ['9', '2', '1', '5']) settle(body, 'accepted');
  await pause(1_000);
  assert.equal(await committed(connection), [-1]);
  settle('0', 'accepted');
  await until('three to be committed', async () => (await committed(connection))[0] === 3);
  settle('4', 'accepted');
  settle('3', 'accepted');
  await until('six to be committed', async () => (await committed(connection))[0] === 6);
  for (const body of ['8', '7', '6']) settle(body, 'accepted');
  await run.stop();
  assert.equal(await committed(connection), [10]);
});

source('the messages of a partition come in the order of the broker', async () => {
  const connection = await fresh();
  await broker.produce(connection.topic_name, numbered(5000));
  const run = reading(plugin, connection, { window: 7 });
  await until('all messages', () => run.messages.length === 5000);
  await run.stop();
  assert.equal(run.bodies(), numbered(5000));
});

beside(
  'a message with the outcome later is delivered again, and so is what is behind it',
  async () => {
    const connection = await fresh();
    await broker.produce(connection.topic_name, inPartition(0, ['one', 'two', 'three']));
    const first = reading(plugin, connection, {
      handle: (message) =>
        Promise.resolve(bodyOf(message) === 'two' ? ('later' as const) : ('accepted' as const)),
    });
    await until('the refusal', () => first.bodies().includes('two'));
    await first.stop();
    assert.equal(await committed(connection), [1]);
    const second = reading(plugin, connection);
    await until('the rest', () => second.messages.length === 2);
    await second.stop();
    assert.equal(second.bodies(), ['two', 'three']);
    assert.is(second.messages[0]?.coordinates, `${connection.topic_name}/0/1`);
    assert.equal(await committed(connection), [3]);
  },
);

beside(
  'a refusal that no end follows ends the run, so that the partition does not stand still for ever',
  async () => {
    const connection = await fresh();
    await broker.produce(connection.topic_name, ['one']);
    const run = reading(plugin, connection, { handle: () => Promise.resolve('later') });
    const error = await failure(within(run.done, 20_000, 'the run to reject'));
    assert.match(error.message, /was not accepted/);
  },
);

beside('no more than the window is handed over and unsettled', async () => {
  const connection = await fresh(2);
  const { handle, settle, waiting } = held();
  await broker.produce(connection.topic_name, [
    ...inPartition(0, numbered(40)),
    ...inPartition(1, numbered(40, 100)),
  ]);
  const run = reading(plugin, connection, { handle, window: 5 });
  await until('both windows to fill', () => waiting().length === 10);
  await pause(2_500);
  assert.is(waiting().length, 10, 'five of each partition');
  settle('0', 'accepted');
  await until('the next', () => waiting().includes('5'));
  // A settled message that waits for an earlier one still counts: a restart would read it again.
  settle('3', 'accepted');
  await pause(300);
  assert.not.ok(waiting().includes('6'));
  while (run.messages.length < 80 || waiting().length > 0) {
    for (const body of waiting()) settle(body, 'accepted');
    await pause(5);
  }
  await run.stop();
  assert.is(new Set(run.bodies()).size, 80);
});

beside(
  'all partitions together have no more in flight than the memory of a member is meant for, and go on when there is room again',
  async () => {
    const connection = await fresh(2);
    const { handle, settle, waiting } = held();
    // Half of each message is a header: its size counts too.
    const half = 'x'.repeat(450_000);
    for (let n = 0; n < 40; n++)
      await broker.produce(connection.topic_name, [
        { value: `${n} ${half}`, headers: { half }, partition: n % 2 },
      ]);
    const run = reading(plugin, connection, { handle, window: 1000 });
    // 19 of these fill 16 MiB; the last one exceeds it.
    await until('the memory to be full', () => waiting().length === 19);
    await pause(1_500);
    assert.is(waiting().length, 19);
    while (run.messages.length < 40 || waiting().length > 0) {
      for (const body of waiting()) settle(body, 'accepted');
      await pause(5);
    }
    await run.stop();
    assert.is(new Set(run.bodies()).size, 40);
  },
);

beside(
  'a window that stays full keeps its partitions: heartbeats do not wait for messages',
  async () => {
    const connection = await fresh();
    const { handle, settle, waiting } = held();
    await broker.produce(connection.topic_name, numbered(3));
    const run = reading(plugin, connection, { handle, window: 1 });
    await until('the first message', () => waiting().length === 1);
    await pause(9_000); // longer than the session
    assert.is(run.messages.length, 1, 'not delivered a second time');
    const done = until('all', () => run.messages.length === 3 && waiting().length === 0, {
      everyMs: 5,
    });
    const settling = setInterval(() => waiting().forEach((body) => settle(body, 'accepted')), 5);
    await done;
    clearInterval(settling);
    await run.stop();
    assert.equal(await committed(connection), [3]);
    assert.is(
      run.logs.filter(({ sentence }) => sentence === 'partitions assigned').length,
      1,
      'it never lost its place',
    );
  },
);

beside('the workers of a source share the partitions', async () => {
  const connection = await fresh(4);
  const run = reading(plugin, connection, { workers: 2 });
  await until('the assignments', () => run.states.at(-1)?.state === 'reading');
  await until('two partitions each', () => {
    const sizes = assignments(run.logs);
    return sizes.length >= 2 && sizes.slice(-2).every((size) => size === 2);
  });
  await broker.produce(
    connection.topic_name,
    numbered(4).flatMap((at) => inPartition(Number(at), [at])),
  );
  await until('all messages', () => run.messages.length === 4);
  await run.stop();
  assert.equal([...run.bodies()].sort(), numbered(4));
});

beside(
  'members are added and taken away while the others stay, and every message is read and committed',
  async () => {
    const connection = await fresh(4);
    const run = reading(plugin, connection, {
      handle: () => pause(Math.random() * 20).then(() => 'accepted' as const),
      window: 50,
    });
    await until('the first member', () => run.states.at(-1)?.state === 'reading');
    let produced = 0;
    const produce = async () => {
      await broker.produce(connection.topic_name, numbered(200, produced));
      produced += 200;
    };
    const members = (count: number) =>
      until(
        `${count} members`,
        async () => (await broker.members(connection.consumer_group_id)) === count,
      );
    await produce();
    for (const count of [3, 1, 2]) {
      run.resize(count);
      await members(count);
      await produce();
    }
    for (const count of [4, 1]) run.resize(count);
    await produce();
    await until('every message', () => new Set(run.bodies()).size === produced);
    await members(1);
    const joined = () => assigned(run.logs).map(({ member }) => member);
    const before = joined().length;
    run.resize(3);
    // A member that stops while joining remains in the group until its session ends.
    await until('three members with partitions', () => new Set(joined().slice(before)).size === 3);
    assert.is(
      new Set(joined().filter((member) => /test-\d+-[0-9a-f]{8}-/.test(member))).size,
      1,
      'the first member stayed',
    );
    run.resize(2);
    await run.stop();
    assert.is(
      await broker.members(connection.consumer_group_id),
      0,
      'also a member that was about to leave',
    );
    assert.equal(
      (await committed(connection)).reduce((sum, offset) => sum + offset),
      produced,
    );
  },
);

beside(
  'a member that is taken away does not wait for ever for what it has read; others read it again',
  async () => {
    const connection = await fresh(2);
    const open: ((outcome: 'accepted') => void)[] = [];
    const run = reading(plugin, connection, {
      handle: () => new Promise((resolve) => open.push(resolve)),
      workers: 2,
    });
    await until('both members', () => run.states.some(({ state }) => state === 'reading'));
    await broker.produce(connection.topic_name, [
      ...inPartition(0, ['a']),
      ...inPartition(1, ['b']),
    ]);
    await until('both messages', () => new Set(run.bodies()).size === 2);
    const before = run.messages.length;
    run.resize(1);
    await until('both to be read by the other', () => run.messages.length === before + 2);
    assert.is(await broker.members(connection.consumer_group_id), 1);
    for (const settle of open) settle('accepted');
    await until('the acknowledgement', async () =>
      (await committed(connection)).every((offset) => offset === 1),
    );
    await run.stop();
  },
);

beside(
  'nothing is lost when readers come and go, and what was committed is not read again',
  async () => {
    const connection = await fresh(3);
    let produced = 0;
    const produce = async (count: number) => {
      await broker.produce(connection.topic_name, numbered(count, produced));
      produced += count;
    };
    const slowly = async () => {
      await pause(Math.random() * 20);
      return 'accepted' as const;
    };
    const runs = [reading(plugin, connection, { handle: slowly, window: 50 })];
    const read = () => new Set(runs.flatMap((run) => run.bodies()));
    await produce(500);
    await until('some messages', () => read().size > 100);
    runs.push(reading(plugin, connection, { handle: slowly, window: 50 }));
    for (let round = 0; round < 5; round++) {
      await produce(300);
      await pause(300);
    }
    await runs[0]?.stop();
    await produce(300);
    runs.push(reading(plugin, connection, { handle: slowly, window: 50, workers: 2 }));
    await produce(300);
    await until('every message', () => read().size === produced, { withinMs: 60_000 });
    for (const run of runs.slice(1)) await run.stop();
    assert.equal(
      (await committed(connection)).reduce((sum, offset) => sum + offset),
      produced,
    );

    const last = reading(plugin, connection);
    await until('the last reader', () => last.states.at(-1)?.state === 'reading');
    await broker.produce(connection.topic_name, ['after']);
    await until('the next message', () => last.messages.length > 0);
    await last.stop();
    assert.equal(last.bodies(), ['after']);
  },
);

beside(
  'a clean stop leaves the group, so that the next start reads at once and not when a session has expired',
  async () => {
    const connection = await fresh(2);
    const first = reading(plugin, connection);
    await broker.produce(connection.topic_name, ['one']);
    await until('the first message', () => first.messages.length === 1);
    await first.stop();
    assert.is(await broker.members(connection.consumer_group_id), 0);
    const second = reading(plugin, connection);
    await broker.produce(connection.topic_name, ['two']);
    await until('the second message', () => second.messages.length === 1);
    await second.stop();
    assert.equal(second.bodies(), ['two']);
  },
);

source('a stop while it is still connecting ends at once', async () => {
  const silent = net.createServer(() => undefined).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as net.AddressInfo;
  const run = reading(plugin, { brokers: [`127.0.0.1:${port}`], topic_name: 'any' });
  await pause(100);
  assert.ok((await run.stop()) < 5_000);
  silent.close();
});

beside('a process that has stopped its source ends by itself', async () => {
  const connection = await fresh();
  const child = reader('@gateway/source-kafka', connection, { stopAfter: 1 });
  await broker.produce(connection.topic_name, ['one']);
  assert.is(await within(child.exited, 30_000, 'the process to end'), 0);
  assert.equal(await committed(connection), [1]);
});

beside(
  'the partitions of a killed reader move within seconds, and its unacknowledged messages with them',
  async () => {
    const connection = await fresh(2);
    const survivor = reading(plugin, connection);
    await until('the first reader', () => survivor.states.at(-1)?.state === 'reading');
    const child = reader('@gateway/source-kafka', connection, { handle: 'never' });
    await until('one partition each', () => assignments(survivor.logs).at(-1) === 1);
    await broker.produce(connection.topic_name, [
      ...inPartition(0, ['0']),
      ...inPartition(1, ['1']),
    ]);
    await until('the child to hold one', () => child.output().includes('message'));
    child.kill('SIGKILL');
    const began = Date.now();
    await until('both messages', () => new Set(survivor.bodies()).size === 2);
    console.log(`partitions of a killed reader moved in ${Date.now() - began} ms`);
    await survivor.stop();
    assert.equal(await committed(connection), [1, 1]);
  },
);

beside(
  'a stop is bounded when the brokers do not answer any more',
  inTurn(async () => {
    const { server, mine } = await ownBroker();
    const connection = { brokers: [server.listeners.plaintext], topic_name: await mine.topic() };
    await mine.produce(connection.topic_name, ['one']);
    const run = reading(plugin, connection, { wantsLag: true });
    await until('the message and the lag', () => run.messages.length === 1 && run.lags['0'] === 0);
    process.kill(server.pid, 'SIGSTOP');
    try {
      assert.ok((await run.stop()) < 10_000);
    } finally {
      process.kill(server.pid, 'SIGCONT');
    }
  }),
);

beside(
  'run rejects when the brokers go away, and the next run goes on where it was',
  inTurn(async () => {
    const { server, mine } = await ownBroker();
    const connection = { brokers: [server.listeners.plaintext], topic_name: await mine.topic() };
    await mine.produce(connection.topic_name, ['one']);
    const first = reading(plugin, connection, { wantsLag: true });
    await until(
      'the commit',
      async () =>
        (await mine.committed(`gateway-${first.sourceId}`, connection.topic_name))[0] === 1,
    );
    await until('the lag', () => first.lags['0'] === 0);
    await server.crash();
    const error = await failure(within(first.done, 60_000, 'the run to reject'));
    assert.match(error.message, new RegExp(`${connection.brokers[0]}`));
    assert.is(first.states.at(-1)?.state, 'failing');
    await server.start();
    const second = reading(plugin, connection);
    await until('to read again', () => second.states.at(-1)?.state === 'reading');
    await mine.produce(connection.topic_name, ['two']);
    await until('the next message', () => second.messages.length > 0);
    await second.stop();
    assert.equal(second.bodies(), ['two']);
  }),
);

source('messages are handed over fast', async () => {
  const connection = await fresh(4);
  const count = 40_000;
  const body = 'x'.repeat(1000);
  await broker.produce(connection.topic_name, Array<string>(count).fill(body));
  let [seen, began, ended] = [0, 0, 0];
  const run = reading(plugin, connection, {
    workers: 2,
    handle: async () => {
      began ||= performance.now();
      if (++seen === count) ended = performance.now();
      await new Promise((resolve) => setImmediate(resolve));
      return 'accepted';
    },
  });
  await until('all messages', () => seen === count);
  // Before the stop: of two workers that leave, one may find the group rebalancing and not commit.
  await until(
    'the commits',
    async () => (await committed(connection)).reduce((sum, offset) => sum + offset) === count,
  );
  await run.stop();
  console.log(`${Math.round(count / ((ended - began) / 1000))} messages of 1 kB a second`);
});

source.run();

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function committed({
  consumer_group_id,
  topic_name,
}: {
  consumer_group_id: string;
  topic_name: string;
}): Promise<number[]> {
  return broker.committed(consumer_group_id, topic_name);
}

/** Uncompressed Snappy data: https://github.com/google/snappy/blob/main/format_description.txt */
function literals(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let length = bytes.length; ; length >>>= 7) {
    parts.push(Buffer.from([length > 127 ? (length & 127) | 128 : length]));
    if (length <= 127) break;
  }
  for (let from = 0; from < bytes.length; from += 60) {
    const literal = bytes.subarray(from, from + 60);
    parts.push(Buffer.from([(literal.length - 1) << 2]), literal);
  }
  return Buffer.concat(parts);
}

/** The number of partitions of each assignment, newest last. */
function assignments(logs: Reading['logs']): number[] {
  return assigned(logs).map(({ partitions }) => partitions.length);
}

function assigned(logs: Reading['logs']) {
  return logs
    .filter(({ sentence }) => sentence === 'partitions assigned')
    .map(({ fields }) => fields as { member: string; partitions: number[] });
}
