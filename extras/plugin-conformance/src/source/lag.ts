import { settles } from '@gateway/plugin';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, must } from '../run/rule.js';
import { texts, type SourceBench, type SourceRule } from './bench.js';
import type { PluginRun } from './plugin-run.js';

/**
 * The multiple of `quietMs` to wait for a report. The contract requires one about every second, the
 * default of `quietMs`.
 */
const REPORT_PATIENCE = 2.5;

/** Rules for reporting lag. A plugin that reports none passes, because reporting is optional. */
export const lagRules: Readonly<Record<string, SourceRule>> = {
  'reads-without-lag': {
    sentence:
      'Without `context.lag`, which a gateway need not give, messages are read all the same.',
    test: async (bench) => {
      const { connection } = await bench.open({ messages: texts(['one']) });
      await bench.run(connection, { wantsLag: false }).untilHanded();
    },
  },
  'tells-lag-as-a-number-of-messages': {
    sentence: 'The lag of a partition is a whole number of messages, not negative, or null.',
    test: async (bench) => {
      const { run, goOn } = await holdSome(bench);
      await untilLag(bench, run);
      goOn();
      await untilLag(bench, run);
      for (const { partition, messages } of run.lags) {
        must(
          typeof partition === 'string',
          `lag was reported for a partition that is not a string: ${String(partition)}`,
        );
        const isCount = messages === null || (Number.isSafeInteger(messages) && messages >= 0);
        must(isCount, `the lag of partition "${partition}" was reported as ${String(messages)}`);
      }
    },
  },
  'forgets-lag-when-it-ends': {
    sentence:
      'Before `run` ends, the lag of every reported partition is reported as null, and nothing is reported after that.',
    needs: ['ends-when-everything-has-settled', 'waits-for-what-it-has-handed-over'],
    test: async (bench) => {
      const { run, goOn } = await holdSome(bench);
      await untilLag(bench, run);
      run.abort();
      goOn();
      await run.stop();
      const last = new Map(run.lags.map(({ partition, messages }) => [partition, messages]));
      const kept = [...last]
        .filter(([, messages]) => messages !== null)
        .map(([partition]) => `"${partition}"`);
      must(
        kept.length === 0,
        `\`run\` has ended, and the lag of partition ${kept.join(', ')} was not reported as null`,
      );
      const reports = run.lags.length;
      await run.stays(
        () => run.lags.length !== reports && 'lag was reported after `run` had ended',
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

/**
 * Starts a run in which some messages stay unsettled and more remain unread. `goOn` accepts all
 * messages, including later ones.
 */
async function holdSome(bench: SourceBench) {
  const { connection } = await bench.open({ partitions: 2, messages: bench.spread() });
  let going = false;
  const run = bench.run(connection, { window: 5, answer: () => (going ? 'accepted' : 'hold') });
  await run.untilHeld();
  const goOn = () => {
    going = true;
    run.settle('accepted');
  };
  return { run, goOn };
}

async function untilLag({ quietMs }: SourceBench, { lags }: PluginRun): Promise<void> {
  const deadline = performance.now() + REPORT_PATIENCE * quietMs;
  const before = lags.length;
  while (performance.now() < deadline && lags.length === before) await sleep(quietMs / 20);
}
