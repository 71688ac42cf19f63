import { setTimeout as sleep } from 'node:timers/promises';
import { leavesNothingOpen, letsNothingEscape } from '../run/process.js';
import { must } from '../run/rule.js';
import { texts, type SourceRule } from './bench.js';

/** A busy loop takes the whole event loop; a client library that wakes up now and then takes a hundredth. */
const BUSY_SHARE_MAX = 0.5;
/** A broker of the rig in the same process may hold what the plugin has closed, such as a long poll, a while longer. */
const CLOSING_PATIENCE = 3;

export const processRules: Readonly<Record<string, SourceRule>> = {
  'rests-when-nothing-comes': {
    sentence: 'A source without messages uses next to no processor time.',
    alone: true,
    test: async (bench) => {
      const { connection } = await bench.open();
      await bench.run(connection).untilReading();
      const before = performance.eventLoopUtilization();
      await sleep(bench.quietMs);
      const { utilization } = performance.eventLoopUtilization(before);
      must(utilization < BUSY_SHARE_MAX, `without messages the event loop is busy for ${Math.round(utilization * 100)} % of the time`);
    },
  },
  'closes-what-it-opened': {
    sentence: 'When `run` has resolved, nothing that it opened keeps the process alive.',
    needs: ['ends-when-everything-has-settled'],
    alone: true,
    test: async (bench) => {
      const open = () => bench.open({ messages: texts(['one']) });
      const places = [await open(), await open(), await open()];
      await leavesNothingOpen(async () => {
        const run = bench.run(places.pop()!.connection);
        await run.untilHanded();
        await run.stop();
      }, bench.withinMs * CLOSING_PATIENCE);
    },
  },
  'check-closes-what-it-opened': {
    sentence: 'When `check` has settled, nothing that it opened keeps the process alive.',
    needs: ['check-accepts-what-can-be-read'],
    alone: true,
    test: async (bench) => {
      const { connection } = await bench.open();
      const failing = bench.rig.wrongCredentials?.connection ?? bench.rig.missing?.connection;
      await leavesNothingOpen(async () => {
        await bench.check(connection);
        if (failing) await bench.check(failing).catch(() => undefined);
      }, bench.withinMs * CLOSING_PATIENCE);
    },
  },
  'lets-nothing-escape': letsNothingEscape,
};
