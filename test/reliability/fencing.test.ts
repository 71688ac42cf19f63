// deadline: 180 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { numbered } from '../support/census.js';
import { connectionOf } from '../support/database.js';
import { endpoint, type Answer } from '../support/endpoint.js';
import { kafka } from '../support/kafka.js';
import { kafkaSource, production, subscribed, topicSource } from '../support/production.js';
import { proxy } from '../support/proxy.js';
import { until } from '../support/until.js';

const fencing = suite('reliability/fencing');

const broker = await kafka();
const gateway = await production({ agents: 0 });
/** The connection between the tested agent and Postgres. */
const postgres = await proxy({ port: connectionOf(gateway.database.url).port });
fencing.after(async () => {
  await gateway.close();
  await postgres.close();
  await broker.close();
});

type Agent = Awaited<ReturnType<typeof gateway.startAgent>>;

const WAITING = 6;

/**
 * An agent has one request in flight and others in memory when it loses its lease. Another agent
 * delivers all of them. The old request is answered with an error, which must not cause a retry of
 * the delivered one.
 */
async function overtaken({
  fall,
  wake,
}: {
  fall: (agent: Agent) => void;
  wake: (agent: Agent) => void;
}): Promise<void> {
  let answerLate: (answer: Answer) => void = () => undefined;
  const late = new Promise<Answer>((resolve) => (answerLate = resolve));
  const receiver = await endpoint({ answer: (_, number) => (number === 0 ? late : {}) });
  try {
    const { uid } = await subscribed(gateway, receiver.url);
    // One request at a time, with a timeout of two minutes.
    await gateway.database.rows(
      'update endpoints set concurrency = 1, timeout_ms = 120000 where id = $1',
      [uid],
    );
    const agent = await gateway.startAgent(['--db-port', String(postgres.port)]);
    const topic = await kafkaSource(gateway, broker, 1);
    await broker.produce(
      topic,
      Array.from({ length: 1 + WAITING }, (_, n) => numbered(n)),
    );
    await until(
      'all of them to be in its hands',
      async () => (await held()) === 1 + WAITING && receiver.requests.length === 1,
    );

    const other = await gateway.startAgent();
    fall(agent);
    await until('the other agent to have delivered all', () => allDelivered(1 + WAITING));
    const rowsBefore = await outcomes();
    assert.is(receiver.requests.length, 2 + WAITING, 'each once by the other agent');

    answerLate({ status: 500 });
    wake(agent);
    await agent.process.line('was presumed dead');
    await until(
      'the late answer to be in the log of attempts',
      async () => (await attempts(500)) === 1,
    );
    await broker.produce(topic, [numbered(100)]);
    await receiver.received(3 + WAITING);
    await until(
      'the new one to be recorded',
      async () => (await outcomes()).length === 2 + WAITING,
    );

    const changed = new Set(rowsBefore);
    assert.is(
      (await outcomes()).filter((row) => changed.has(row)).length,
      rowsBefore.length,
      'what the other agent wrote stays',
    );
    assert.is(
      receiver.requests.length,
      3 + WAITING,
      'nothing of what waited in its memory was sent',
    );
    assert.is(await attempts(200), 2 + WAITING);

    // The agent has fully recovered: it delivers alone.
    await other.process.terminate();
    await broker.produce(topic, [numbered(101)]);
    await receiver.received(4 + WAITING);
  } finally {
    for (const kind of ['sources', 'endpoints']) {
      const { content } = await gateway.api<{ content: { uid: string }[] }>('GET', `/${kind}`);
      for (const { uid } of content) await gateway.api('DELETE', `/${kind}/${uid}`);
    }
    for (const { process } of gateway.agents.splice(0)) await process.terminate();
    await receiver.close();
    await gateway.database.rows('truncate events, event_deliveries, delivery_attempts');
  }
}

async function held(): Promise<number> {
  return (await gateway.database.rows(`select from event_deliveries where status = 'processing'`))
    .length;
}

async function allDelivered(count: number): Promise<boolean> {
  return (
    (await gateway.database.rows(`select from event_deliveries where status = 'success'`))
      .length === count
  );
}

/** Finished deliveries, as text. */
async function outcomes(): Promise<string[]> {
  const rows = await gateway.database.rows<{ row: string }>(
    `select d::text as row from event_deliveries d where status = 'success'`,
  );
  return rows.map(({ row }) => row);
}

async function attempts(status: number): Promise<number> {
  return (
    await gateway.database.rows('select from delivery_attempts where http_status = $1', [status])
  ).length;
}

fencing(
  'an agent that was frozen beyond its lease sends nothing of what waited, and overwrites no outcome',
  () =>
    overtaken({
      fall: ({ process: { pid } }) => process.kill(pid, 'SIGSTOP'),
      wake: ({ process: { pid } }) => process.kill(pid, 'SIGCONT'),
    }),
);

fencing('nor does an agent whose connection to Postgres was broken for longer', () =>
  overtaken({ fall: () => postgres.freeze(), wake: () => postgres.restore() }),
);

fencing(
  'an agent that lost its partitions while it was frozen commits no offset of theirs',
  async () => {
    const COUNT = 4_000;
    const receiver = await endpoint();
    const frozen = await gateway.startAgent();
    try {
      const { topic } = await topicSource(gateway, broker, receiver.url, 2);
      type Sources = { content: { pub_sub: { kafka: { consumer_group_id: string } } }[] };
      const group = (await gateway.api<Sources>('GET', '/sources')).content[0]!.pub_sub.kafka
        .consumer_group_id;
      await gateway.startAgent();
      await until('both to be members', async () => (await broker.members(group)) === 2);
      const producing = broker.produce(
        topic,
        Array.from({ length: COUNT }, (_, n) => ({ partition: n % 2, value: numbered(n) })),
      );
      await receiver.received(200);
      process.kill(frozen.process.pid, 'SIGSTOP');
      await producing;
      const distinct = () =>
        new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size;
      await until('the other agent to have read and delivered everything', async () => {
        const [a, b] = await broker.committed(group, topic);
        return distinct() === COUNT && a === COUNT / 2 && b === COUNT / 2;
      });
      const seen: number[][] = [];
      process.kill(frozen.process.pid, 'SIGCONT');
      await until('it to be a member again', async () => {
        seen.push(await broker.committed(group, topic));
        return (await broker.members(group)) === 2;
      });
      await broker.produce(
        topic,
        [0, 1].map((partition) => ({ partition, value: numbered(COUNT + partition) })),
      );
      await until('the last two to be committed', async () => {
        const offsets = await broker.committed(group, topic);
        seen.push(offsets);
        return offsets.every((offset) => offset === COUNT / 2 + 1);
      });
      assert.ok(
        seen.every((offsets) => offsets.every((offset) => offset >= COUNT / 2)),
        `offsets went back: ${JSON.stringify(seen)}`,
      );
      await until('the last two deliveries', () => distinct() === COUNT + 2);
      const [row] = await gateway.database.rows<{ n: number }>(
        'select count(*)::int as n from events',
      );
      assert.is(row?.n, COUNT + 2, 'no second event');
      const repeated = receiver.requests.length - COUNT - 2;
      const [recovered] = await gateway.database.rows<{ n: number }>(
        'select coalesce(sum(recovered), 0)::int as n from event_deliveries',
      );
      console.log(`    ${repeated} arrived a second time, ${recovered?.n} were recovered`);
      assert.ok(repeated <= (recovered?.n ?? 0));
    } finally {
      process.kill(frozen.process.pid, 'SIGCONT');
      await receiver.close();
    }
  },
);

fencing.run();
