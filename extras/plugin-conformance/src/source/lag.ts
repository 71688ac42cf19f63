import { settles } from '@gateway/plugin';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, must } from '../run/rule.js';
import type { SourceBench, SourceRule } from './bench.js';
import type { PluginRun } from './plugin-run.js';

/**
 * The multiple of `quietMs` to wait for a report. The contract requires one about every second, the
 * default of `quietMs`.
 */
const REPORT_PATIENCE = 2.5;

/** Rules for reporting lag. A plugin that reports none passes, because reporting is optional. */
export const lagRules: Readonly<Record<string, SourceRule>> = {
  'tells-lag-as-a-number-of-messages': {
    sentence:
      'The lag of a partition is a whole number of messages, not negative, or null, as it is before `run` ends.',
    needs: ['ends-when-everything-has-settled', 'waits-for-what-it-has-handed-over'],
    test: async (bench) => {
      const { connection } = await bench.open({ partitions: 2, messages: bench.spread() });
      let going = false;
      const answer = () => (going ? 'accepted' : 'hold');
      const run = bench.run(connection, { window: 5, answer });
      await run.untilHeld();
      await untilLag(bench, run);
      run.abort();
      going = true;
      await run.stop('accepted');
      for (const { partition, messages } of run.lags) {
        const isCount = messages === null || (Number.isSafeInteger(messages) && messages >= 0);
        must(isCount, `the lag of partition "${partition}" was reported as ${String(messages)}`);
      }
      const last = new Map(run.lags.map(({ partition, messages }) => [partition, messages]));
      const kept = [...last].filter(([, messages]) => messages !== null);
      must(
        kept.length === 0,
        `\`run\` has ended, and the lag of partition "${kept[0]?.[0]}" was not reported as null`,
      );
    },
  },
  'watches-a-source-that-stands-still': {
    sentence:
      'If there is `watch`, it reports the lag while nothing is read, as whole numbers of messages, and resolves when its signal aborts.',
    test: async (bench) => {
      const { plugin, settings, withinMs } = bench;
      if (!plugin.watch) return;
      const { connection } = await bench.open({ partitions: 2, messages: bench.spread() });
      const abort = new AbortController();
      const lags = new Map<string, number | null>();
      const none = () => {};
      const watched = plugin.watch(connection, {
        settings,
        sourceId: randomUUID(),
        signal: abort.signal,
        clientId: `conformance-${randomUUID().slice(0, 8)}`,
        log: { debug: none, info: none, warn: none, error: none },
        lag: (partition, messages) => void lags.set(partition, messages),
        advise: none,
      });
      watched.catch(none);
      try {
        await eventually(() => {
          const sum = [...lags.values()].reduce<number>(
            (total, messages) => total + (messages ?? 0),
            0,
          );
          return Promise.resolve(
            sum !== 40 &&
              `40 messages wait and nothing reads; \`watch\` reported ${JSON.stringify([...lags])}`,
          );
        }, withinMs);
      } finally {
        abort.abort();
        must(
          await settles(watched, withinMs),
          `\`watch\` has not resolved ${withinMs / 1000} s after its signal aborted`,
        );
      }
      await watched;
    },
  },
};

async function untilLag({ quietMs }: SourceBench, { lags }: PluginRun): Promise<void> {
  const deadline = performance.now() + REPORT_PATIENCE * quietMs;
  const before = lags.length;
  while (performance.now() < deadline && lags.length === before) await sleep(quietMs / 20);
}
