// deadline: 180 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint, type Answer } from '../support/endpoint.js';
import { scrape } from '../support/exposition.js';
import { production, type Production } from '../support/production.js';
import { own } from '../support/services.js';
import { until } from '../support/until.js';

const breaker = suite('reliability/breaker');

let kv: Awaited<ReturnType<typeof own.redis>>;
let gateway: Production;
breaker.before(async () => {
  kv = await own.redis();
  const settings = {
    circuit_breaker: { error_timeout: 1, max_error_timeout: 2 },
    enable_feature_flag: ['pullmetrics'],
    metrics: { enabled: true, metrics_backend: 'pullmetrics' },
  };
  gateway = await production({ agents: 2, redis: kv, settings });
});
breaker.after(async () => {
  await gateway?.close();
  await kv?.close();
});

async function sendTo(url: string, events: number, more: object): Promise<string> {
  const { uid } = await gateway.api('POST', '/endpoints', { name: 'shop', url, ...more });
  const numbers = Array.from({ length: events }, (_, n) => n);
  for (let n = 0; n < events; n += 20)
    await Promise.all(
      numbers
        .slice(n, n + 20)
        .map((k) =>
          gateway.api('POST', '/events', { endpoint_id: uid, event_type: 'a', data: { n: k } }),
        ),
    );
  return uid;
}

interface Breaker {
  readonly state: string;
  readonly failures: number;
}

const breakerOf = async (id: string) =>
  (await gateway.api<{ circuit_breaker: Breaker | null }>('GET', `/endpoints/${id}`))
    .circuit_breaker;

const delivered = async (id: string) =>
  (
    await gateway.database.rows<{ n: number }>(
      `select count(*)::int as n from event_deliveries where endpoint_id = $1 and status = 'success'`,
      [id],
    )
  )[0]!.n;

breaker(
  'an endpoint that goes bad is left alone by both agents, tried by one request at a time, and gets everything when it is back',
  async () => {
    const EVENTS = 60;
    let isBad = true;
    let now = 0;
    let most = 0;
    const at = await endpoint({
      answer: async (): Promise<Answer> => {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setTimeout(resolve, 50));
        now--;
        return { status: isBad ? 503 : 200 };
      },
    });
    try {
      // Under this retry policy alone, all deliveries would have failed permanently within five
      // seconds. A probe counts as an attempt, and can repeat the same delivery.
      const id = await sendTo(at.url, EVENTS, {
        strategy: { type: 'linear', duration: 1, retry_count: 4 },
      });
      await until('the breaker to open', async () => (await breakerOf(id))?.state === 'open');
      const stateAt = async (port: number) =>
        (await scrape(port)).sum('gateway_endpoint_breaker_state', { endpoint: id }) ?? 0;
      await until('both agents to know', async () =>
        (await Promise.all(gateway.agents.map(({ port }) => stateAt(port)))).every((it) => it > 0),
      );
      await until('what was under way to end', () => now === 0);
      // Deliveries tried before the breaker opened come up for their next attempt first.
      const waiting = await until('what is left to wait', async () => {
        const [row] = await gateway.database.rows<{ reason: string }>(
          `select reason from event_deliveries where status in ('scheduled', 'retry') and reason like 'The circuit breaker%' limit 1`,
        );
        return row;
      });
      assert.match(waiting.reason, 'is open');

      const before = at.requests.length;
      most = 0;
      await until('four probes', () => at.requests.length >= before + 4);
      assert.is(most, 1, 'probes are made one at a time');
      const bad = at.requests.length;
      console.log(`  ${before} requests before it was left alone, then ${bad - before} probes`);
      const [counted] = await gateway.database.rows<{ failed: number }>(
        `select count(*) filter (where status = 'failure')::int as failed from event_deliveries`,
      );
      assert.is(counted!.failed, 0, 'nobody has used up the attempts');

      isBad = false;
      await until('all deliveries', async () => (await delivered(id)) === EVENTS);
      await until(
        'the breaker to be closed',
        async () => (await breakerOf(id))?.state === 'closed',
      );
      const good = new Set(at.requests.map(({ headers }) => headers['webhook-id']));
      assert.is(good.size, EVENTS);
      const [sums] = await gateway.database.rows<{ attempts: number; recorded: number }>(
        `select (select sum(attempts)::int from event_deliveries) as attempts, (select count(*)::int from delivery_attempts) as recorded`,
      );
      assert.equal(
        [sums!.attempts, sums!.recorded],
        [at.requests.length, at.requests.length],
        'an attempt is a request',
      );
    } finally {
      await at.close();
    }
  },
);

breaker(
  'two agents keep to the rate limit of an endpoint together, also while Redis is away, and nothing is lost',
  async () => {
    const [EVENTS, LIMIT] = [250, 50];
    const at = await endpoint();
    try {
      const id = await sendTo(at.url, EVENTS, { rate_limit: LIMIT });
      await at.received(60);
      await kv.stop();
      assert.is(await breakerOf(id), null, 'the API answers without Redis');
      const reset = await gateway
        .api<object>('POST', `/endpoints/${id}/reset_circuit_breaker`)
        .then(
          () => 'it was reset',
          (error: Error) => error.message,
        );
      assert.match(
        reset,
        /answered 503: .*the KV store of the gateway cannot be reached: the circuit breaker is unchanged/,
      );
      assert.not.match(reset, /127\.0\.0\.1|localhost/, 'where Redis is concerns nobody else');
      const cutAt = at.requests.length;
      await at.received(Math.min(EVENTS, cutAt + 30));
      await kv.start();
      await until('all deliveries', async () => (await delivered(id)) === EVENTS);
      const times = at.requests.map(({ receivedAt }) => receivedAt);
      const most = Math.max(
        ...times.map((from) => times.filter((time) => time >= from && time < from + 1_000).length),
      );
      const seconds = (times.at(-1)! - times[0]!) / 1000;
      console.log(
        `  at most ${most} requests in a second, of ${LIMIT}; ${EVENTS} in ${seconds.toFixed(1)} s`,
      );
      assert.ok(most <= LIMIT * 1.6, `${most} requests in a second`);
      assert.ok(seconds >= EVENTS / LIMIT / 1.5, `${seconds} s`);
      assert.is(new Set(at.requests.map(({ headers }) => headers['webhook-id'])).size, EVENTS);
    } finally {
      await at.close();
    }
  },
);

breaker.run();
