import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readBreakers } from '#store/kv/circuit-breakers';
import type { Kv } from '#store/kv/kv';
import { MemoryKv } from '#store/kv/memory-kv';
import { migratedDatabase } from '../store/migrated.js';
import { keptMetrics } from '../support/kept-metrics.js';
import { until } from '../support/until.js';
import { Broker } from './memory-source.js';
import { makeEndpoint, makeProject, makeSource } from './records.js';
import { pluginsOf } from './running.js';
import { withAgent } from './scene.js';

/** Numeric settings: an agent with non-default values behaves differently. */
const other = suite('agent/settings');

const db = await migratedDatabase();
other.after(() => db.close());

other(
  'circuit_breaker.*: share, requests, minutes and seconds are those of the settings, and of a project that says otherwise',
  async () => {
    const kv: Kv = new MemoryKv();
    const settings = {
      failure_threshold: 40,
      minimum_request_count: 5,
      observability_window: 7,
      error_timeout: 90,
      max_error_timeout: 120,
    };
    const own = {
      failure_threshold: 100,
      minimum_request_count: 2,
      observability_window: 3,
      error_timeout: 20,
    };
    await withAgent(
      db,
      async ({ running, endpointId }) => {
        const { circuitBreakers } = running.wiring;
        const projectId = await makeProject(db, { config: { circuit_breaker: own } });
        const { id: otherId } = await makeEndpoint(db, projectId, { url: 'http://127.0.0.1:1' });
        await running.configCache.refresh();
        const [plain, changed] = [
          running.configCache.endpoint(running.projectId, endpointId)!,
          running.configCache.endpoint(projectId, otherId)!,
        ];
        const record = async (id: string) => (await readBreakers(kv)).get(id);
        const secondsOf = async (id: string) => {
          const { since_ms: since, until_ms: end } = (await record(id))!;
          return Math.round((end - since) / 1000);
        };
        const attempts = (endpoint: typeof plain, good: number, bad: number) => {
          for (let n = 0; n < good + bad; n++)
            circuitBreakers.countRequest(endpoint, n < good, 'refused');
        };
        attempts(plain, 0, 1);
        attempts(changed, 0, 1);
        await until('both counts to be shared', async () => (await readBreakers(kv)).size === 2);
        assert.equal([await secondsOf(endpointId), await secondsOf(otherId)], [7 * 60, 3 * 60]);

        // Three failures of four exceed the threshold, but not the minimum number of requests.
        attempts(plain, 1, 2);
        assert.is(circuitBreakers.stateOf(endpointId), undefined);
        attempts(plain, 0, 1);
        assert.is(circuitBreakers.stateOf(endpointId)?.state, 'open');
        // This endpoint opens only if all requests fail: in this window one in three succeeds.
        attempts(changed, 1, 1);
        assert.is(circuitBreakers.stateOf(otherId), undefined);
        const third = await makeEndpoint(db, projectId, { url: 'http://127.0.0.1:1' });
        await running.configCache.refresh();
        attempts(running.configCache.endpoint(projectId, third.id)!, 0, 2);
        assert.is(circuitBreakers.stateOf(third.id)?.state, 'open');
        await until('both to be open for all', async () =>
          (await Promise.all([endpointId, third.id].map(record))).every(
            (it) => it?.state === 'open',
          ),
        );
        assert.equal([await secondsOf(endpointId), await secondsOf(third.id)], [90, 20]);

        // The probe is due, and fails: the doubled delay is capped at the maximum.
        const map = kv.map('breakers');
        const { entries, nowMs } = await map.all();
        const from = entries.get(endpointId)!;
        await map.change([
          {
            field: endpointId,
            from,
            to: JSON.stringify({ ...(JSON.parse(from) as object), until_ms: nowMs - 1 }),
          },
        ]);
        await until(
          'the probe',
          async () =>
            circuitBreakers.stateOf(endpointId)?.state === 'due' &&
            (await circuitBreakers.requestProbe(plain)),
        );
        await circuitBreakers.recordProbe(plain, false, 'refused');
        const { until_ms: end, forget_ms: forget } = (await record(endpointId))!;
        assert.is(Math.round((forget - end) / 2 / 1000), 120);
      },
      { kv, settings: { circuit_breaker: settings } },
    );
  },
);

other(
  'limits.*: a project that would turn its circuit breakers off, from before it was refused, has the bounds',
  async () => {
    await withAgent(
      db,
      async ({ running }) => {
        const { circuitBreakers } = running.wiring;
        const projectId = await makeProject(db, {
          config: { circuit_breaker: { failure_threshold: 0, minimum_request_count: 1000 } },
        });
        const { id } = await makeEndpoint(db, projectId, { url: 'http://127.0.0.1:1' });
        await running.configCache.refresh();
        const endpoint = running.configCache.endpoint(projectId, id)!;
        for (const isGood of [false, true, false])
          circuitBreakers.countRequest(endpoint, isGood, 'refused');
        assert.is(circuitBreakers.stateOf(id), undefined, 'three requests do not decide');
        circuitBreakers.countRequest(endpoint, false, 'refused');
        assert.is(circuitBreakers.stateOf(id)?.state, 'open', 'three bad ones of four do');
      },
      { settings: { limits: { failure_threshold: 75, minimum_request_count: 4 } } },
    );
  },
);

/** Sends a message with an idempotency key twice. Returns the number of events. */
async function eventsOfTwo(ingest: object): Promise<number> {
  const broker = new Broker();
  let events = 0;
  await withAgent(
    db,
    async ({ running }) => {
      // Sources remain in the database: each reads a separate queue.
      const queue = `window ${JSON.stringify(ingest)}`;
      await makeSource(db, running.projectId, { queue });
      await running.configCache.refresh();
      running.wiring.start();
      for (const n of [1, 2])
        await broker.queue(queue).send({ event_type: 'a', data: { n }, idempotency_key: 'once' });
      events = (await db.rows('select from events')).length;
      await db.rows('delete from idempotency_keys');
    },
    { plugins: pluginsOf(broker.plugins()), settings: { ingest } },
  );
  return events;
}

other(
  'ingest.idempotency_window_seconds: a key makes one event within it, and another one afterwards',
  async () => {
    assert.is(await eventsOfTwo({}), 1);
    assert.is(await eventsOfTwo({ idempotency_window_seconds: 0 }), 2);
  },
);

other('ingest.batch_size: no commit accepts more messages', async () => {
  const broker = new Broker();
  const kept = keptMetrics();
  await withAgent(
    db,
    async ({ running }) => {
      await makeSource(db, running.projectId, { queue: 'batches' });
      await running.configCache.refresh();
      const sent = Array.from({ length: 30 }, (_, n) =>
        broker.queue('batches').send({ event_type: 'a', data: { n } }),
      );
      running.wiring.start();
      await Promise.all(sent);
      const { value, count } = kept
        .all('gateway_batch_size')
        .find(({ labels }) => labels['batch'] === 'commit')!;
      assert.is(value, 30);
      assert.ok(count >= 10, `${count} commits`);
    },
    {
      plugins: { ...pluginsOf(broker.plugins()), ...kept },
      settings: { ingest: { batch_size: 3 } },
    },
  );
});

const FUNCTION = `function transform({ n }) { if (n === 1) for (;;); return { event_type: 'a', data: { text: 'x'.repeat(n) } }; }`;

other(
  'transform.*: time, memory, output and processes of functions are those of the settings',
  async () => {
    const broker = new Broker();
    const transform = { deadline_ms: 150, memory_mb: 24, max_output_bytes: 100, processes: 1 };
    await withAgent(
      db,
      async ({ running }) => {
        await makeSource(db, running.projectId, { queue: 'transformed', bodyFunction: FUNCTION });
        await running.configCache.refresh();
        running.wiring.start();
        const outcomes = await Promise.all(
          [1, 100, 2].map((n) => broker.queue('transformed').send({ n })),
        );
        const reasons = (
          await db.rows<{ reason: string }>('select reason from quarantined_messages')
        )
          .map((it) => it.reason)
          .join('\n');
        assert.equal(outcomes, ['quarantined', 'quarantined', 'accepted'], reasons);
        assert.match(reasons, /within its deadline of 150 ms/);
        assert.match(reasons, /and 100 are allowed/);
        const { sandbox } = running.wiring;
        assert.ok(
          sandbox.command?.args.includes('--max-old-space-size=24'),
          sandbox.command?.args.join(' '),
        );
        assert.is(sandbox.processes, 1);
      },
      { plugins: pluginsOf(broker.plugins()), settings: { transform } },
    );
  },
);

other.run();
