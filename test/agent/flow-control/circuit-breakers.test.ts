import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BreakerPolicy } from '#agent/config/breaker-policy';
import { CircuitBreakers } from '#agent/flow-control/circuit-breakers';
import type { Trip } from '#agent/model/delivery';
import type { Endpoint } from '#ingest/routing/project';
import { readBreakers, resetBreaker } from '#store/kv/circuit-breakers';
import type { Kv } from '#store/kv/kv';
import { MemoryKv } from '#store/kv/memory-kv';
import { proxy } from '../../support/proxy.js';
import { redis } from '../../support/redis.js';
import { until, within } from '../../support/until.js';
import { openRedisKv } from '../../store/redis-kv.js';
import { keptLog } from '../running.js';

const circuitBreakers = suite('agent/flow-control/circuit-breakers');

const policy: BreakerPolicy = {
  threshold: 0.5,
  minimumRequests: 10,
  windowMs: 60_000,
  openMs: 300,
  openMaxMs: 1_000,
};
const endpoint = { projectId: 'p', id: 'e', timeoutMs: 500 } as Endpoint;

interface Agent {
  readonly circuitBreakers: CircuitBreakers;
  readonly trips: Trip[];
  readonly lines: ReturnType<typeof keptLog>['lines'];
  readonly closings: string[];
  /** Endpoints whose breaker closed, as this agent learned. */
  readonly closed: string[];
}

function agentOn(
  kv: Kv,
  name: string,
  policyOf: () => BreakerPolicy | undefined = () => policy,
): Agent {
  const { log, lines } = keptLog();
  const [trips, closings, closed]: [Trip[], string[], string[]] = [[], [], []];
  const made = new CircuitBreakers({
    kv,
    log,
    name,
    policyOf,
    inFlight: { wake: () => undefined },
    backlogPacing: { expedite: ({ id }) => void closings.push(id) },
    observers: [{ tripped: (trip) => trips.push(trip), closed: (id) => closed.push(id) }],
  });
  return { circuitBreakers: made, trips, lines, closings, closed };
}

async function scene(
  kvs: readonly [Kv, Kv],
  test: (one: Agent, other: Agent) => Promise<void>,
): Promise<void> {
  const [one, other] = [agentOn(kvs[0], 'one'), agentOn(kvs[1], 'other')];
  try {
    await within(test(one, other), 60_000, 'the test');
  } finally {
    await Promise.all([one.circuitBreakers.stop(), other.circuitBreakers.stop()]);
  }
}

function attempts(agent: Agent, good: number, bad: number): void {
  for (let n = 0; n < good; n++) agent.circuitBreakers.countRequest(endpoint, true, '');
  for (let n = 0; n < bad; n++) agent.circuitBreakers.countRequest(endpoint, false, 'refused');
}

const state = (agent: Agent) => agent.circuitBreakers.stateOf(endpoint.id)?.state;
const states = (...agents: Agent[]) => agents.map(state);

/** Runs a test in memory, and on a real Redis that two agents reach through a proxy. */
function each(behaviour: string, test: (one: Agent, other: Agent, kv: Kv) => Promise<void>): void {
  circuitBreakers(`in memory: ${behaviour}`, async () => {
    const kv = new MemoryKv();
    await scene([kv, kv], (one, other) => test(one, other, kv));
  });
  circuitBreakers(`Redis: ${behaviour}`, async () => {
    const own = await redis();
    const kvs = [await openRedisKv(own.connection), await openRedisKv(own.connection)] as const;
    try {
      await scene(kvs, (one, other) => test(one, other, kvs[1]));
    } finally {
      await Promise.all(kvs.map((kv) => kv.close()));
      await own.close();
    }
  });
}

each(
  'an endpoint that asks one agent to wait is left alone by the others too',
  async (one, other) => {
    one.circuitBreakers.backOff(endpoint, 60_000);
    assert.ok(one.circuitBreakers.backsOffMs(endpoint.id) > 50_000, 'at once');
    await until('the other to know', () => other.circuitBreakers.backsOffMs(endpoint.id) > 0);
    assert.equal(other.circuitBreakers.backingOff(), [{ projectId: 'p', endpointId: 'e' }]);
    assert.equal([states(one, other), one.trips.length], [[undefined, undefined], 0]);
  },
);

each(
  'one agent opens it at once, the other learns of it, and one line and one trip tell',
  async (one, other) => {
    // Successes before the first failure are not recorded.
    attempts(one, 100, 1);
    attempts(one, 5, 3);
    assert.is(state(one), undefined);
    attempts(one, 0, 1);
    assert.is(state(one), 'open');
    await until('the other to know', () => state(other) !== undefined);
    assert.equal([one.trips.length, other.trips.length], [1, 0]);
    assert.equal([one.trips[0]!.isFirst, one.trips[0]!.error], [true, 'refused']);
    assert.is(
      one.lines.filter(
        ({ level, sentence }) =>
          level === 'warn' && sentence.startsWith('Opened the circuit breaker'),
      ).length,
      1,
    );
  },
);

each(
  'a trip tells whether only operational events failed, and each agent learns that it closed',
  async (one, other) => {
    const fail = (isOperational: boolean) =>
      one.circuitBreakers.countRequest(endpoint, false, 'refused', isOperational);
    for (let n = 0; n < 10; n++) fail(true);
    await until('both to know', () => states(one, other).every((it) => it === 'due'));
    assert.equal([one.trips.map((it) => it.isOperational), one.closed], [[true], []]);
    assert.ok(await one.circuitBreakers.requestProbe(endpoint));
    await one.circuitBreakers.recordProbe(endpoint, true, '');
    await until('the other to learn', () => other.closed.length > 0);
    assert.equal([one.closed, other.closed], [[endpoint.id], [endpoint.id]]);
    for (let n = 0; n < 10; n++) fail(n !== 4);
    await until('the next trip', () => one.trips.length === 2);
    assert.is(one.trips[1]!.isOperational, false);
  },
);

each('what each agent sees is too little alone, and enough together', async (one, other, kv) => {
  attempts(one, 0, 6);
  attempts(other, 0, 6);
  assert.equal(states(one, other), [undefined, undefined]);
  await until('both to know', () => states(one, other).every((it) => it !== undefined));
  assert.is((await readBreakers(kv)).get(endpoint.id)?.failures, 12);
  assert.is(one.trips.length + other.trips.length, 1);
});

each(
  'one agent alone is granted the probe; a bad one opens it again, a good one closes it for all',
  async (one, other, kv) => {
    attempts(one, 0, 10);
    await until('both to know', () => states(one, other).every((it) => it === 'due'));
    const granted = await Promise.all([
      one.circuitBreakers.requestProbe(endpoint),
      other.circuitBreakers.requestProbe(endpoint),
    ]);
    assert.is(granted.filter(Boolean).length, 1);
    assert.is(await one.circuitBreakers.requestProbe(endpoint), false);
    const [prober, idle] = granted[0] ? [one, other] : [other, one];
    assert.is(state(prober), 'half_open');
    await idle.circuitBreakers.recordProbe(endpoint, true, '');
    assert.is(
      (await readBreakers(kv)).get(endpoint.id)?.state,
      'half_open',
      'an outcome of somebody who does not probe counts for nothing',
    );
    await prober.circuitBreakers.recordProbe(endpoint, false, 'refused');
    assert.is(state(prober), 'open');
    assert.is(prober.trips.at(-1)?.isFirst, false);

    await until('the next probe', () => states(one, other).every((it) => it === 'due'));
    assert.ok(await idle.circuitBreakers.requestProbe(endpoint));
    await idle.circuitBreakers.recordProbe(endpoint, true, '');
    await until('both to know', () => states(one, other).every((it) => it === undefined));
    assert.equal(idle.closings, [endpoint.id]);
  },
);

each('whoever probes and is not heard of again is followed by another', async (one, other) => {
  attempts(one, 0, 10);
  const hasty = { ...endpoint, timeoutMs: -4_800 };
  await until('the time of a probe', () => state(one) === 'due');
  assert.ok(await one.circuitBreakers.requestProbe(hasty));
  await until('the other to be granted one', () => other.circuitBreakers.requestProbe(endpoint));
});

each('an operator closes it for all', async (one, other, kv) => {
  attempts(one, 0, 10);
  await until('the other to know', () => state(other) !== undefined);
  assert.ok(await resetBreaker(kv, endpoint.id));
  await until('both to know', () => states(one, other).every((it) => it === undefined));
  assert.not.ok(await resetBreaker(kv, endpoint.id));
});

circuitBreakers(
  'an endpoint that answers well is not even remembered, and one without a policy never opens',
  async () => {
    const kv = new MemoryKv();
    await scene([kv, kv], async (one) => {
      attempts(one, 1_000, 0);
      const none = agentOn(kv, 'none', () => undefined);
      attempts(none, 0, 1_000);
      assert.equal([state(none), none.circuitBreakers.notClosed()], [undefined, []]);
      await none.circuitBreakers.stop();
      assert.is((await readBreakers(kv)).size, 0);
    });
  },
);

circuitBreakers(
  'while KV is away an agent goes by what it sees itself, and tells the others when KV is back',
  async () => {
    const own = await redis();
    const away = await proxy({ port: own.connection.port });
    const kvs = [
      await openRedisKv(own.connection, { port: away.port }),
      await openRedisKv(own.connection),
    ] as const;
    try {
      await scene(kvs, async (one, other) => {
        away.cut();
        attempts(one, 0, 10);
        assert.is(state(one), 'open');
        await until(
          'its own probe',
          async () => state(one) === 'due' && (await one.circuitBreakers.requestProbe(endpoint)),
        );
        await one.circuitBreakers.recordProbe(endpoint, false, 'refused');
        assert.is(state(one), 'open');
        assert.is(state(other), undefined);
        away.restore();
        await until('the other to learn of it', () => state(other) !== undefined);
        // KV can lose everything at any time.
        await own.client.flushdb();
        await until('both to forget', () => states(one, other).every((it) => it === undefined));
      });
    } finally {
      await Promise.all(kvs.map((kv) => kv.close()));
      await away.close();
      await own.close();
    }
  },
);

circuitBreakers.run();
