// deadline: 300 s, long
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { census, missing, numbered } from '../support/census.js';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { freeze } from '../support/frozen.js';
import { kafka, type KafkaBroker } from '../support/kafka.js';
import { heldBy } from '../support/memory.js';
import { production, topicSource, type Production } from '../support/production.js';
import { own } from '../support/services.js';
import { smallDisk, type SmallDisk } from '../support/small-disk.js';
import type { PostgresServer } from '../support/start/postgres.js';
import type { RedisServer } from '../support/start/redis.js';
import { until } from '../support/until.js';

const away = suite('reliability/away');

let postgres: PostgresServer;
let redis: RedisServer;
let broker: KafkaBroker;
let receiver: Endpoint;
let gateway: Production;
let topic: string;
let secret: string;
let group: string;
let produced = 0;
let disk: SmallDisk | undefined;

away.before(async () => {
  [postgres, redis, broker, receiver] = await Promise.all([
    own.postgres(),
    own.redis(),
    kafka(),
    endpoint(),
  ]);
  gateway = await production({ postgres, redis });
  ({ topic, secret } = await topicSource(gateway, broker, receiver.url));
  const [source] = await gateway.database.rows<{ name: string }>(
    `select pub_sub->'kafka'->>'consumer_group_id' as name from sources`,
  );
  group = source!.name;
});
away.after(async () => {
  await gateway.close();
  await Promise.all([broker.close(), receiver.close()]);
  await Promise.all([postgres.close(), redis.close()]);
  disk?.close();
});

interface Health {
  readonly message: string;
  readonly data: {
    readonly ready: boolean;
    readonly state: string;
    readonly components: readonly {
      readonly name: string;
      readonly state: string;
      readonly since: string;
      readonly reason?: string;
    }[];
  };
}

async function health(port: number): Promise<Health & { httpStatus: number }> {
  const response = await fetch(`http://127.0.0.1:${port}/healthz?ready`, {
    signal: AbortSignal.timeout(15_000),
  });
  return { ...((await response.json()) as Health), httpStatus: response.status };
}

const agent = () => gateway.agents[0]!;

async function produce(count: number): Promise<void> {
  const from = produced;
  produced += count;
  await broker.produce(
    topic,
    Array.from({ length: count }, (_, k) => numbered(from + k)),
  );
}

async function acknowledged(): Promise<number> {
  return (await broker.committed(group, topic)).reduce(
    (sum, offset) => sum + Math.max(0, offset),
    0,
  );
}

/** Members of the group. A rebalance started by a leaving member gives new ids. */
async function members(): Promise<{ state: string; ids: string[] }> {
  const admin = broker.client().admin();
  await admin.connect();
  try {
    const { groups } = await admin.describeGroups([group]);
    return {
      state: groups[0]!.state,
      ids: groups[0]!.members.map(({ memberId }) => memberId).sort(),
    };
  } finally {
    await admin.disconnect();
  }
}

/** Waits until every produced message is delivered and acknowledged, and compares the counts. */
async function allDelivered(): Promise<void> {
  await until(
    `${produced} deliveries to be recorded`,
    async () => (await census(gateway, [], secret)).deliveries['success'] === produced,
    {
      withinMs: 90_000,
      everyMs: 100,
    },
  );
  const seen = await census(gateway, receiver.requests, secret);
  assert.equal(missing(seen.arrivals, produced), [], 'nothing is lost');
  assert.equal(
    [seen.events, seen.quarantined, seen.badSignatures],
    [produced, 0, 0],
    'one event each, none in quarantine',
  );
  assert.equal(seen.deliveries, { success: produced }, 'no row is stuck');
  await until('everything to be acknowledged', async () => (await acknowledged()) === produced);
}

interface Fault {
  readonly dependency: 'postgres' | 'kv';
  readonly state: 'down' | 'degraded';
  readonly reason: RegExp;
  /** The server's state, if different. */
  readonly ofServer?: 'ok' | 'degraded' | 'down';
  readonly begin: () => unknown;
  readonly cure: () => unknown;
  /** Events that can be accepted during the fault. */
  readonly accepts?: 'nothing' | 'some' | 'everything';
}

/**
 * Starts a fault, produces messages during it and ends it; checks the agent, its group, its health,
 * its log and the counts.
 */
async function survives({
  dependency,
  state,
  reason,
  ofServer = state,
  begin,
  cure,
  accepts = 'nothing',
}: Fault): Promise<void> {
  await produce(100);
  await allDelivered();
  const before = await members();
  const logged = agent().process.stderr.length;
  const beganAt = Date.now();
  await begin();
  let ended = false;
  try {
    await produce(300);
    const told = await until(
      `the agent's health to tell of ${dependency}`,
      async () =>
        (await health(agent().port)).data.components.find(
          (it) => it.name === dependency && it.state === state,
        ),
      { withinMs: 40_000 },
    );
    console.log(
      `${dependency} was told to be ${state} after ${((Date.now() - beganAt) / 1000).toFixed(1)} s: ${told.reason}`,
    );
    assert.match(told.reason ?? '', reason);
    const sinceMs = Date.parse(told.since);
    assert.ok(sinceMs >= beganAt - 5_000 && sinceMs <= Date.now(), `since ${told.since}`);
    const whole = await health(agent().port);
    assert.is(whole.httpStatus, state === 'down' ? 503 : 200);
    assert.ok(
      whole.message.includes(`${dependency} is ${state} since ${told.since}: `),
      whole.message,
    );

    const server = await until(`the server's health to tell of ${dependency}`, async () => {
      const answer = await health(gateway.serverPort);
      const found = answer.data.components.find((it) => it.name === dependency);
      return found?.state === ofServer && { ...answer, found };
    });
    await sleep(1_200);
    const again = (await health(gateway.serverPort)).data.components.find(
      (it) => it.name === dependency,
    );
    assert.is(again?.since, server.found.since, 'the server keeps since when');

    const atBroker = await acknowledged();
    if (accepts === 'nothing')
      assert.is(atBroker, produced - 300, 'nothing is acknowledged meanwhile');
    else if (accepts === 'some') {
      const [row] = await gateway.database.rows<{ n: number }>(
        'select count(*)::int as n from events',
      );
      assert.ok(atBroker <= row!.n, `${atBroker} acknowledged, ${row!.n} committed`);
      assert.ok(row!.n < produced, 'the fault is one');
    }
    assert.equal(await members(), before, 'the members stay in the group, with their partitions');
    assert.is(before.state, 'Stable');
    const curedAt = Date.now();
    await cure();
    ended = true;
    await until(
      'both to be well again',
      async () =>
        (await health(agent().port)).data.state === 'ok' &&
        (await health(gateway.serverPort)).data.state === 'ok',
      { withinMs: 40_000 },
    );
    console.log(`well again ${((Date.now() - curedAt) / 1000).toFixed(1)} s after the cure`);
    await allDelivered();
    const held = heldBy(agent().process.pid);
    console.log(
      `all delivered ${((Date.now() - curedAt) / 1000).toFixed(1)} s after the cure; RSS ${held?.rssMb.toFixed(0)} MB, at most ${held?.peakMb.toFixed(0)} MB`,
    );
    assert.equal(await members(), before, 'and nobody had to join again');
    // One line at the beginning, one at the end.
    const lines = agent()
      .process.stderr.slice(logged)
      .split('\n')
      .filter((line) => line.includes(`"dependency":"${dependency}"`))
      .map((line) => JSON.parse(line) as { level: string; message: string; since: string });
    assert.equal(
      lines.map(({ level, since }) => [level, since]),
      [
        ['warn', told.since],
        ['info', told.since],
      ],
      JSON.stringify(lines),
    );
  } finally {
    if (!ended) await cure();
  }
}

away('Postgres is stopped and started', () =>
  survives({
    dependency: 'postgres',
    state: 'down',
    reason: /^Postgres at 127\.0\.0\.1:\d+ cannot be reached: .*database\.host/,
    begin: () => postgres.stop(),
    cure: () => postgres.start(),
  }),
);

away('Postgres is frozen: connections stand and nothing answers', () => {
  let thaw = () => {};
  return survives({
    dependency: 'postgres',
    state: 'down',
    reason: /^Postgres at 127\.0\.0\.1:\d+ cannot be reached: no answer in time/,
    begin: () => (thaw = freeze(postgres.pid)),
    cure: () => thaw(),
  });
});

away(
  'Postgres is read-only, as a failover that came up as a replica: the server still answers what is asked',
  () => {
    const turn = async (how: string) => {
      await gateway.database.rows(`alter system ${how}`);
      await gateway.database.rows('select pg_reload_conf()');
    };
    return survives({
      dependency: 'postgres',
      state: 'down',
      reason:
        /^Postgres at 127\.0\.0\.1:\d+ is read-only: it is a replica, or default_transaction_read_only is on\./,
      ofServer: 'degraded',
      begin: () => turn('set default_transaction_read_only = on'),
      cure: () => turn('reset default_transaction_read_only'),
    });
  },
);

away('Redis is stopped and started: events are routed without it', () =>
  survives({
    dependency: 'kv',
    state: 'degraded',
    reason: /^Redis at 127\.0\.0\.1:\d+ cannot be reached: /,
    begin: () => redis.stop(),
    cure: () => redis.start(),
    accepts: 'everything',
  }),
);

away('Redis is frozen', () => {
  let thaw = () => {};
  return survives({
    dependency: 'kv',
    state: 'degraded',
    reason: /^Redis at 127\.0\.0\.1:\d+ /,
    begin: () => (thaw = freeze(redis.pid)),
    cure: () => thaw(),
    accepts: 'everything',
  });
});

away('the memory of Redis is full: it answers, and takes nothing', () => {
  const limit = async (bytes: string) => {
    await gateway.kv.client.config('SET', 'maxmemory-policy', 'noeviction');
    await gateway.kv.client.config('SET', 'maxmemory', bytes);
  };
  return survives({
    dependency: 'kv',
    state: 'degraded',
    reason: /^Redis at 127\.0\.0\.1:\d+ accepts no writes: its memory is full \(maxmemory\)/,
    begin: () => limit('1'),
    cure: () => limit('0'),
    accepts: 'everything',
  });
});

away('the disk of Postgres is full', async () => {
  disk = await smallDisk(postgres, gateway.database);
  console.log(`the disk is a ${disk.kind}`);
  await survives({
    dependency: 'postgres',
    state: 'down',
    reason: /^Postgres at 127\.0\.0\.1:\d+ cannot write: its disk is full\./,
    ofServer: 'ok',
    begin: () => disk!.fill(),
    cure: () => disk!.free(),
    accepts: 'some',
  });
});

away.run();
