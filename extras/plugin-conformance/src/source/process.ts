import { setTimeout as sleep } from 'node:timers/promises';
import { leavesNothingOpen, letsNothingEscape } from '../run/process.js';
import { must } from '../run/rule.js';
import { texts, type SourceRule } from './bench.js';

/**
 * The maximum event loop utilization, from 0 to 1. A busy loop uses all of it; a client library's
 * periodic wake-ups use a hundredth.
 */
const BUSY_SHARE_MAX = 0.5;

export const processRules: Readonly<Record<string, SourceRule>> = {
  'rests-when-nothing-comes': {
    sentence: 'A source without messages uses next to no processor time.',
    alone: true,
    test: async (bench) => {
      const { run } = await bench.start();
      await run.untilReading();
      const before = performance.eventLoopUtilization();
      await sleep(bench.quietMs);
      const { utilization } = performance.eventLoopUtilization(before);
      must(
        utilization < BUSY_SHARE_MAX,
        `without messages the event loop is busy for ${Math.round(utilization * 100)} % of the time`,
      );
    },
  },
  'closes-what-it-opened': {
    sentence:
      'When `check` has settled or `run` has resolved, nothing that it opened keeps the process alive.',
    needs: ['ends-when-everything-has-settled', 'check-accepts-what-can-be-read'],
    alone: true,
    test: async (bench) => {
      const failing = bench.rig.wrongCredentials?.connection ?? bench.rig.missing?.connection;
      await leavesNothingOpen(async () => {
        const { place, run } = await bench.start({ messages: texts(['one']) });
        await run.untilHanded();
        await run.stop();
        await bench.check(place.connection);
        if (failing) await bench.check(failing).catch(() => undefined);
      }, bench.withinMs);
    },
  },
  'lets-nothing-escape': letsNothingEscape,
};
