import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RateLimits } from '#agent/flow-control/rate-limits';
import type { Rate } from '#core/process/token-buckets';
import { updateEndpoint } from '#store/config/endpoints';
import { WAIT_REASONS } from '#store/deliveries/postponed-deliveries';
import type { Kv } from '#store/kv/kv';
import { MemoryKv } from '#store/kv/memory-kv';
import { bucketsOn } from '../support/buckets.js';
import { endpoint as receiver, type Endpoint } from '../support/endpoint.js';
import { proxy } from '../support/proxy.js';
import { redis } from '../support/redis.js';
import { until } from '../support/until.js';
import { empty } from '../store/batches.js';
import { migratedDatabase } from '../store/migrated.js';
import { openRedisKv } from '../store/redis-kv.js';
import { hold, states } from './hold.js';
import { makeEndpoint, makeProject } from './records.js';
import { runAgent, type RunningAgent } from './running.js';

const rateLimit = suite('agent/rate-limit');

const db = await migratedDatabase();
rateLimit.after(() => db.close());

const fifty: Rate = { perSecond: 50, burst: 5 };

/** Counts the tokens granted to an agent with unlimited demand. */
async function drain(
  rateLimits: (onTokens: () => void) => RateLimits,
  limit: Rate,
  forMs: number,
): Promise<number> {
  let taken = 0;
  const takeAll = () => {
    while (of.take({ id: 'e' }, limit, 1_000, performance.now())) taken++;
  };
  const of = rateLimits(takeAll);
  takeAll();
  await new Promise((resolve) => setTimeout(resolve, forMs));
  return taken;
}

const limitsOn = (kv: Kv, agents: number) => (onTokens: () => void) =>
  new RateLimits({
    buckets: bucketsOn(kv, agents),
    lease: { agents },
    inFlight: { wake: onTokens },
  });

rateLimit('two agents that always want more get what the limit says, together', async () => {
  const kv = new MemoryKv();
  const startedAtMs = performance.now();
  const taken = (await Promise.all([1, 2].map(() => drain(limitsOn(kv, 2), fifty, 3_000)))).reduce(
    (sum, n) => sum + n,
  );
  const seconds = (performance.now() - startedAtMs) / 1000;
  assert.ok(taken <= 50 * seconds + 5 + 1, `${taken} in ${seconds} s`);
  assert.ok(taken >= 50 * 3 * 0.6, `${taken} in ${seconds} s`);
});

rateLimit('a limit of less than one in a second lets one through now and then', async () => {
  const slow: Rate = { perSecond: 2, burst: 1 };
  const taken = await drain(limitsOn(new MemoryKv(), 1), slow, 1_700);
  assert.ok(taken >= 2 && taken <= 4, String(taken));
});

rateLimit('while KV is away each agent keeps to its share', async () => {
  const own = await redis();
  const away = await proxy({ port: own.connection.port });
  const kv = await openRedisKv(own.connection, { port: away.port });
  try {
    away.cut();
    const startedAtMs = performance.now();
    const taken = await drain(limitsOn(kv, 5), fifty, 2_000);
    const seconds = (performance.now() - startedAtMs) / 1000;
    assert.ok(taken > 0, 'deliveries go on');
    assert.ok(taken <= 10 * seconds + 2, `${taken} in ${seconds} s`);
  } finally {
    await kv.close();
    await away.close();
    await own.close();
  }
});

rateLimit('what is put off gets its turn at the pace of the limit, one behind the other', () => {
  const rateLimits = limitsOn(new MemoryKv(), 2)(() => undefined);
  const at = { id: 'e' };
  // Two agents: this one's share is 25 per second.
  assert.equal(rateLimits.slots(at, fifty, 10, 50, 1_000), { dueInMs: 2_000, paceMs: 40 });
  assert.equal(rateLimits.slots(at, fifty, 1, 50, 1_000), { dueInMs: 2_400, paceMs: 40 });
  assert.equal(rateLimits.slots(at, fifty, 0, 0, 2_000), { dueInMs: 1_440, paceMs: 40 });
  assert.is(rateLimits.slots({ id: 'other' }, fifty, 1, 0, 1_000).dueInMs, 0);
  rateLimits.slots(at, fifty, 1_000_000, 0, 2_000);
  assert.is(
    rateLimits.slots(at, fifty, 1, 0, 2_000).dueInMs,
    600_000,
    'nobody is put off for days: the limit may be changed',
  );
  assert.equal(
    [
      rateLimits.room(fifty),
      rateLimits.room({ perSecond: 0.01, burst: 1 }),
      rateLimits.room({ perSecond: 5_000, burst: 1 }),
    ],
    [100, 1, 100],
  );
});

async function scene(
  limit: { rate_limit?: number; rate_limit_duration?: number },
  test: (of: {
    running: RunningAgent;
    at: Endpoint;
    id: string;
    push: (count: number) => Promise<void>;
  }) => Promise<void>,
  project?: Parameters<typeof makeProject>[1],
): Promise<void> {
  const projectId = await makeProject(db, project);
  const running = await runAgent({ db, projectId });
  const at = await receiver();
  try {
    const { id } = await makeEndpoint(db, projectId, { url: at.url, ...limit });
    await running.configCache.refresh();
    await test({
      running,
      at,
      id,
      push: async (count) => running.wiring.inFlight.add(await hold(running, id, count)),
    });
  } finally {
    await at.close();
    await running.close();
    await empty(db);
  }
}

function mostPerSecond({ requests }: Endpoint): number {
  const times = requests.map(({ receivedAt }) => receivedAt);
  return Math.max(
    ...times.map((from) => times.filter((time) => time >= from && time < from + 1_000).length),
  );
}

rateLimit(
  'an endpoint gets no more than it wants, what waits keeps its attempts, and all of it arrives once',
  () =>
    scene({ rate_limit: 40 }, async ({ running, at, id, push }) => {
      await push(130);
      await until(
        'what has no room to wait in Postgres',
        async () => ((await states(running, id))['scheduled later'] ?? 0) > 0,
      );
      const [waiting] = await db.rows<{ reason: string; attempts: number }>(
        `select reason, attempts from event_deliveries where endpoint_id = $1 and status = 'scheduled' limit 1`,
        [id],
      );
      assert.equal(waiting, { reason: WAIT_REASONS.rate_limit, attempts: 0 });
      await until('all deliveries', async () => (await states(running, id))['success'] === 130);
      const most = mostPerSecond(at);
      console.log(`  at most ${most} requests in a second, of 40`);
      assert.ok(most <= 40 * 1.5, `${most} requests in a second`);
      assert.is(new Set(at.requests.map(({ headers }) => headers['webhook-id'])).size, 130);
      assert.is(at.requests.length, 130);
      const left = await db.rows(
        `select 1 from event_deliveries where endpoint_id = $1 and (reason is not null or attempts <> 1)`,
        [id],
      );
      assert.is(left.length, 0);
    }),
);

rateLimit(
  'an endpoint that says nothing has the limit of its project, and one that says 0 has none',
  async () => {
    const project = { config: { ratelimit: { count: 10, duration: 1 } } };
    await scene(
      { rate_limit: 0 },
      async ({ running, id, push }) => {
        assert.is(running.configCache.endpoint(running.projectId, id)?.limit, null);
        await push(60);
        await until('all deliveries', async () => (await states(running, id))['success'] === 60);
      },
      project,
    );
    await scene(
      {},
      async ({ running, at, id, push }) => {
        assert.equal(running.configCache.endpoint(running.projectId, id)?.limit, {
          perSecond: 10,
          burst: 1,
        });
        await push(15);
        await at.received(5);
        assert.ok(at.requests.length < 15);
        // Removing the limit releases the waiting deliveries immediately.
        await updateEndpoint(db.knex, running.projectId, id, { rate_limit: 0 });
        await until('all deliveries', async () => (await states(running, id))['success'] === 15);
      },
      project,
    );
  },
);

rateLimit.run();
