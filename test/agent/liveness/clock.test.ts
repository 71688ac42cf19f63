import { hostname } from 'node:os';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Clock } from '#agent/model/clock';
import { reportShardHealth } from '#agent/liveness/health';
import { Health } from '#core/process/health';
import { keptMetrics } from '../../support/kept-metrics.js';
import { until } from '../../support/until.js';
import { migratedDatabase } from '../../store/migrated.js';
import { delivered, hold } from '../hold.js';
import { keptLog, pluginsOf } from '../running.js';
import { withAgent } from '../scene.js';

const clock = suite('agent/liveness/clock');

const realNow = Date.now;
const shift = (ms: number) => (Date.now = () => realNow() + ms);
clock.after.each(() => void (Date.now = realNow));

clock(
  'on a machine with a wrong clock requests are signed and recorded with the time of Postgres; health, log and a series tell',
  async () => {
    const db = await migratedDatabase();
    const kept = keptMetrics();
    try {
      for (const [seconds, way] of [
        [3600, 'ahead of'],
        [-3600, 'behind'],
      ] as const) {
        shift(seconds * 1000);
        await withAgent(
          db,
          async ({ running, at, endpointId }) => {
            const { wiring, configCache } = running;
            await until('the first heartbeat', () => wiring.clock.offsetMs !== 0);
            running.wiring.inFlight.add(await hold(running, endpointId, 1));
            await delivered(running, endpointId, 1);
            const signed = Number(at.requests[0]!.headers['webhook-timestamp']) * 1000;
            assert.ok(Math.abs(signed - realNow()) < 60_000, `signed ${signed - realNow()} ms off`);
            const [row] = await db.rows<{ s: number }>(
              'select extract(epoch from now() - requested_at)::float8 as s from delivery_attempts',
            );
            assert.ok(Math.abs(row!.s) < 60, `recorded ${row!.s} s ago`);

            await kept.scrape();
            assert.ok(Math.abs(kept.value('gateway_clock_offset_seconds')! + seconds) < 60);

            const health = new Health();
            const { log, lines } = keptLog();
            const { shard } = wiring;
            const stop = reportShardHealth(wiring, { configCache, shard, health, log });
            try {
              const { state, reason } = health.of('clock')!;
              assert.is(state, 'degraded');
              assert.match(
                reason!,
                new RegExp(`^The clock of ${hostname()} is 3[56]\\d\\d s ${way} that of Postgres`),
              );
              assert.equal(
                lines
                  .filter(({ sentence }) => sentence.includes('clock'))
                  .map(({ level, fields }) => [level, (fields as { reason: string }).reason]),
                [['warn', reason]],
              );
              shift(0);
              await until('health to be well again', () => health.of('clock')!.state === 'ok');
              assert.is(health.of('clock')!.reason, undefined);
            } finally {
              stop();
            }
          },
          { plugins: { ...pluginsOf(), ...kept } },
        );
      }
    } finally {
      await db.close();
    }
  },
);

clock('a difference that the duration of the question explains is none', () => {
  const it = new Clock();
  const { now } = performance;
  const monotonicMs = now.call(performance);
  performance.now = () => monotonicMs;
  const nowMs = realNow();
  Date.now = () => nowMs;
  const offsets = (
    [
      [-5, 10],
      [-15, 10],
      [5, 10],
      [-5_000, 10],
      [5_000, 10],
    ] as const
  ).map(([aheadMs, durationMs]) => {
    it.adjust(nowMs + aheadMs, monotonicMs - durationMs);
    return it.offsetMs;
  });
  performance.now = now;
  assert.equal(offsets, [0, -5, 5, -4_990, 5_000]);
});

clock('a step of the clock between two heartbeats moves nothing', () => {
  const it = new Clock();
  shift(3_600_000);
  assert.ok(Math.abs(it.now() - realNow()) < 60_000);
});

clock('a step of the clock while Postgres is asked moves nothing', () => {
  for (const stepMs of [3_600_000, -3_600_000]) {
    const it = new Clock();
    const askedAtMs = performance.now();
    shift(stepMs);
    it.adjust(realNow(), askedAtMs);
    assert.ok(Math.abs(it.now() - realNow()) < 1_000, `${it.now() - realNow()} ms off`);
    shift(0);
  }
});

clock(
  'a slow answer moves nothing that it does not contradict, whatever the wall clock says',
  () => {
    const it = new Clock();
    for (const stepMs of [3_600_000, -3_600_000]) {
      shift(stepMs);
      it.adjust(realNow() - 1_000, performance.now() - 2_000);
      assert.ok(Math.abs(it.now() - realNow()) < 100, `${it.now() - realNow()} ms off`);
    }
  },
);

clock(
  'when the clock is set nothing is signed until Postgres has been asked again, also what waits for a token or a function',
  async () => {
    const db = await migratedDatabase();
    try {
      await withAgent(db, async ({ running, at, endpointId }) => {
        const { lease } = running.wiring;
        for (const stepMs of [3_600_000, -3_600_000, 0]) {
          await until('the lease to be held', () => lease.isHeld);
          shift(stepMs);
          assert.not.ok(lease.isHeld);
          const before = at.requests.length;
          running.wiring.inFlight.add(await hold(running, endpointId, 1));
          await delivered(running, endpointId, before + 1);
          const signed = Number(at.requests.at(-1)!.headers['webhook-timestamp']) * 1000;
          assert.ok(Math.abs(signed - realNow()) < 10_000, `signed ${signed - realNow()} ms off`);
        }
      });
    } finally {
      await db.close();
    }
  },
);

clock.run();
