// deadline: 240 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { census, missing, numbered } from '../support/census.js';
import { endpoint } from '../support/endpoint.js';
import { kafka } from '../support/kafka.js';
import { heldBy } from '../support/memory.js';
import { makePending } from '../support/pending.js';
import { kafkaSource, production, type Created, type Production } from '../support/production.js';
import { until } from '../support/until.js';

const pressure = suite('reliability/pressure');

const SMALL = 1_000;
/** Together, the large messages exceed an agent's prefetch limit. */
const LARGE = 100;
const LARGE_BYTES = 300_000;
const MESSAGES = SMALL + LARGE;
/** `npm run bench -- soak --pending 1000000` runs with a million for half an hour. */
const PENDING = 2_000;
const RSS_MB = 340;
/** Limits in the settings, lower than the number of produced and pending messages. */
const MAX_OUTSTANDING = 1_000;

interface Component {
  readonly name: string;
  readonly state: string;
  readonly since: string;
  readonly reason?: string;
}

async function health(port: number): Promise<{ state: string; components: readonly Component[] }> {
  const response = await fetch(`http://127.0.0.1:${port}/healthz?ready`);
  assert.is(response.status, 200, 'endpoints do not make an agent unready');
  return ((await response.json()) as { data: { state: string; components: readonly Component[] } })
    .data;
}

/** Creates an endpoint with a short timeout and short retries, for one event type. */
async function impatient(
  gateway: Production,
  url: string,
  eventType: string,
): Promise<{ uid: string; secret: string }> {
  const { uid, secrets } = await gateway.api<Created & { secrets: { value: string }[] }>(
    'POST',
    '/endpoints',
    {
      name: eventType,
      url,
      http_timeout: 2,
      strategy: { type: 'linear', duration: 1, retry_count: 1000 },
    },
  );
  await gateway.api('POST', '/subscriptions', {
    name: eventType,
    endpoint_id: uid,
    filter_config: { event_types: [eventType] },
  });
  return { uid, secret: secrets[0]!.value };
}

async function claimed(gateway: Production): Promise<number> {
  const [row] = await gateway.database.rows<{ n: number }>(
    `select count(*)::int as n from event_deliveries where status = 'processing'`,
  );
  return row!.n;
}

pressure(
  'all endpoints hang: what comes is accepted and waits in Postgres, the memory is bounded, and all is delivered to the one that is well again',
  async () => {
    const broker = await kafka();
    const receiver = await endpoint({ answer: { hang: true } });
    const silent = await endpoint({ answer: { hang: true } });
    const gateway = await production({
      settings: {
        delivery: { allowed_networks: ['127.0.0.0/8'], max_outstanding: MAX_OUTSTANDING },
        circuit_breaker: { error_timeout: 1, max_error_timeout: 2 },
      },
    });
    try {
      const { secret } = await impatient(gateway, receiver.url, 'order.created');
      const { uid: busy } = await impatient(gateway, silent.url, 'order.paid');
      const topic = await kafkaSource(gateway, broker, 8);
      const beganMs = Date.now();
      await makePending(gateway.database, busy, PENDING);
      console.log(
        `${PENDING} pending deliveries were made in ${((Date.now() - beganMs) / 1000).toFixed(1)} s`,
      );
      await broker.produce(
        topic,
        Array.from({ length: SMALL }, (_, n) => numbered(n)),
      );
      const note = 'x'.repeat(LARGE_BYTES);
      for (let n = SMALL; n < MESSAGES; n++) {
        await broker.produce(topic, [
          JSON.stringify({ event_type: 'order.created', data: { n, note } }),
        ]);
      }
      let mostClaimed = 0;
      await until(
        'all messages to be accepted',
        async () => {
          mostClaimed = Math.max(mostClaimed, await claimed(gateway));
          return (await census(gateway, [], secret)).events === MESSAGES + PENDING / 1_000;
        },
        { everyMs: 200 },
      );
      console.log(
        `all accepted after ${((Date.now() - beganMs) / 1000).toFixed(1)} s; at most ${mostClaimed} deliveries were claimed`,
      );
      assert.ok(
        mostClaimed > 0 && mostClaimed <= MAX_OUTSTANDING + 500,
        `${mostClaimed} claimed, one batch above the bound at most`,
      );

      const agent = gateway.agents[0]!;
      const told = await until('health to tell that nothing is delivered', async () =>
        (await health(agent.port)).components.find(({ name }) => name === 'endpoints'),
      );
      assert.is(told.state, 'degraded');
      assert.match(
        told.reason ?? '',
        /^No delivery succeeds: every attempt, to (one endpoint|2 endpoints), has failed\./,
      );
      assert.ok(Date.parse(told.since) >= beganMs - 1_000, told.since);
      receiver.answer({ status: 500 });
      const answered = receiver.requests.length;
      await receiver.received(answered + 1);
      receiver.answer({});
      const curedMs = Date.now();
      await until(
        'health to be well again',
        async () => (await health(agent.port)).state === 'ok',
        { withinMs: 60_000 },
      );
      console.log(
        `well again ${((Date.now() - curedMs) / 1000).toFixed(1)} s after an endpoint was`,
      );
      await until(
        'all messages to be delivered',
        async () => {
          const [row] = await gateway.database.rows<{ n: number }>(
            `select count(*)::int as n from event_deliveries where status = 'success' and event_type = 'order.created'`,
          );
          return row!.n === MESSAGES;
        },
        { withinMs: 120_000, everyMs: 200 },
      );
      console.log(
        `all delivered ${((Date.now() - curedMs) / 1000).toFixed(1)} s after the endpoint was well, and the other one still hangs`,
      );
      assert.equal(
        missing((await census(gateway, receiver.requests, secret)).arrivals, MESSAGES),
        [],
        'nothing is lost',
      );
      const lines = agent.process.stderr
        .split('\n')
        .filter((line) => line.includes('"dependency":"endpoints"'));
      assert.is(
        lines.length,
        2,
        `one line when it begins, one when it is over: ${lines.join('\n')}`,
      );

      const held = heldBy(agent.process.pid);
      console.log(
        `RSS of the agent ${held?.rssMb.toFixed(0)} MB, at most ${held?.peakMb.toFixed(0)} MB; ${held?.handles} handles`,
      );
      if (held) assert.ok(held.peakMb < RSS_MB, `${held.peakMb} MB`);
    } finally {
      await gateway.close();
      await Promise.all([receiver.close(), silent.close(), broker.close()]);
    }
  },
);

pressure.run();
