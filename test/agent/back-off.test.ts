import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WAIT_REASONS } from '#store/deliveries/postponed-deliveries';
import { MemoryKv } from '#store/kv/memory-kv';
import { type Answer, endpoint as receiver, type Endpoint } from '../support/endpoint.js';
import { until } from '../support/until.js';
import { empty } from '../store/batches.js';
import { migratedDatabase } from '../store/migrated.js';
import { hold, states } from './hold.js';
import { makeEndpoint, makeProject } from './records.js';
import { runAgent, type RunningAgent } from './running.js';

const backOff = suite('agent/back-off');

const db = await migratedDatabase();
backOff.after(() => db.close());

async function scene(
  script: (at: Endpoint, number: number) => Answer,
  test: (of: { running: RunningAgent; at: Endpoint; id: string }) => Promise<void>,
): Promise<void> {
  const projectId = await makeProject(db);
  const at = await receiver();
  at.answer((_request, number) => script(at, number));
  // The breaker would open too.
  const settings = { circuit_breaker: { minimum_request_count: 1000 } };
  const running = await runAgent({ db, projectId, kv: new MemoryKv(), settings });
  try {
    const strategy = { type: 'linear', duration: 1, retry_count: 50 } as const;
    const { id } = await makeEndpoint(db, projectId, { url: at.url, strategy });
    await running.configCache.refresh();
    await test({ running, at, id });
  } finally {
    await at.close();
    await running.close();
    await empty(db);
  }
}

const TOO_MANY: Answer = { status: 429, headers: { 'retry-after': '3' } };

backOff('one Retry-After holds all deliveries of the endpoint, without their attempts', () =>
  scene(
    (_at, number) => (number === 0 ? TOO_MANY : {}),
    async ({ running, at, id }) => {
      const { inFlight } = running.wiring;
      inFlight.add(await hold(running, id, 1));
      await at.received(1);
      await until('the back-off', () => running.wiring.circuitBreakers.backsOffMs(id) > 0);
      inFlight.add(await hold(running, id, 150));
      await until('those in Postgres', async () => {
        const [row] = await db.rows<{ n: number }>(
          `select count(*)::int as n from event_deliveries where endpoint_id = $1 and attempts = 0 and reason = $2`,
          [id, WAIT_REASONS.back_off],
        );
        return row!.n >= 150;
      });
      await until('all', async () => (await states(running, id))['success'] === 151, {
        withinMs: 30_000,
      });
      const [first, ...rest] = at.requests.map(({ receivedAt }) => receivedAt);
      const waited = Math.min(...rest) - first!;
      assert.ok(waited >= 2_900, `the next request came after ${waited} ms`);
      const [row] = await db.rows<{ n: number }>(
        `select max(attempts)::int as n from event_deliveries where endpoint_id = $1 and attempts <> 1`,
        [id],
      );
      assert.is(row!.n, 2, 'only the delivery that was refused used a further attempt');
      assert.is(at.requests.length, 152);
    },
  ),
);

backOff('an endpoint that refuses what is too many at once gets fewer at once', () => {
  let [underWay, refused] = [0, 0];
  return scene(
    () => ({}),
    async ({ running, at, id }) => {
      at.answer(async () => {
        if (underWay >= 5) {
          refused++;
          return { status: 503 };
        }
        underWay++;
        await new Promise((resolve) => setTimeout(resolve, 20));
        underWay--;
        return {};
      });
      running.wiring.inFlight.add(await hold(running, id, 90));
      await until('a lower limit', () => running.wiring.concurrency.lowered().length > 0);
      await until('all', async () => (await states(running, id))['success'] === 90, {
        withinMs: 120_000,
      });
      assert.ok(refused <= 90, `${refused} of ${at.requests.length} requests were refused`);
    },
  );
});

backOff.run();
