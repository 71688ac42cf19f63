import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Throttle } from '#agent/flow-control/throttle';
import type { Kv } from '#store/kv/kv';
import { MemoryKv } from '#store/kv/memory-kv';
import { bucketsOn } from '../../support/buckets.js';
import { openRedisKv } from '../../store/redis-kv.js';
import { proxy, type Proxy } from '../../support/proxy.js';
import { redis } from '../../support/redis.js';
import { until, within } from '../../support/until.js';
import { keptLog } from '../running.js';

const throttle = suite('agent/flow-control/throttle');

const never = new AbortController().signal;

async function scene(test: (kvs: [Kv, Kv], away: Proxy) => Promise<void>): Promise<void> {
  const own = await redis();
  const away = await proxy({ port: own.connection.port });
  const kvs: [Kv, Kv] = [
    await openRedisKv(own.connection, { port: away.port }),
    await openRedisKv(own.connection, { port: away.port }),
  ];
  try {
    await within(test(kvs, away), 60_000, 'the test');
  } finally {
    await Promise.all(kvs.map((kv) => kv.close()));
    await away.close();
    await own.close();
  }
}

/** Takes as many tokens as granted for a while. Returns their number. */
async function take(from: Throttle, forMs: number): Promise<number> {
  const stop = AbortSignal.timeout(forMs);
  let taken = 0;
  while (!stop.aborted) taken += await from.take(50, stop);
  return taken;
}

throttle('a rate of nothing is no limit', async () => {
  const unlimited = new Throttle(bucketsOn(new MemoryKv()), 0);
  assert.ok(unlimited.unlimited);
  for (let n = 0; n < 100; n++) assert.is(await unlimited.take(1_000_000, never), 1_000_000);
});

throttle('two agents keep to one rate together', () =>
  scene(async (kvs) => {
    const rate = 100;
    const agents = kvs.map((kv) => new Throttle(bucketsOn(kv, 2), rate));
    const startedAtMs = performance.now();
    const taken = (await Promise.all(agents.map((agent) => take(agent, 3_000)))).reduce(
      (sum, n) => sum + n,
    );
    const seconds = (performance.now() - startedAtMs) / 1000;
    // The bucket starts with one second's worth.
    assert.ok(taken <= rate * (seconds + 1) + 1, `${taken} in ${seconds} s`);
    assert.ok(taken >= rate * 3 * 0.8, `${taken} in ${seconds} s`);
  }),
);

throttle('while KV is away each agent keeps to its share, and logs it once', () =>
  scene(async (kvs, away) => {
    const rate = 100;
    const { log, lines } = keptLog();
    const agent = new Throttle(bucketsOn(kvs[0], 4, log), rate);
    assert.ok((await agent.take(10, never)) > 0);
    away.cut();
    const startedAtMs = performance.now();
    const taken = await take(agent, 2_000);
    const seconds = (performance.now() - startedAtMs) / 1000;
    assert.ok(taken > 0, 'ingesting goes on');
    assert.ok(taken <= (rate / 4) * (seconds + 1) + 1, `${taken} in ${seconds} s`);
    assert.is(lines.filter(({ level }) => level === 'warn').length, 1);
    away.restore();
    await until('Redis to answer again', () => kvs[0].ping().then(() => true));
    assert.ok((await agent.take(10, never)) > 0);
  }),
);

throttle('a network that drops packets does not stop ingesting', () =>
  scene(async (kvs, away) => {
    const agent = new Throttle(bucketsOn(kvs[0]), 100);
    away.freeze();
    assert.ok((await within(agent.take(10, never), 15_000, 'tokens')) > 0);
    away.restore();
  }),
);

throttle('waiting ends when the signal aborts', async () => {
  const agent = new Throttle(bucketsOn(new MemoryKv()), 1);
  assert.is(await agent.take(5, never), 1);
  const stop = new AbortController();
  const waiting = agent.take(5, stop.signal);
  stop.abort();
  assert.is(await within(waiting, 5_000, 'the end of the wait'), 0);
});

throttle.run();
