import { leavesNothing } from '../run/open-handles.js';
import { must } from '../run/judge.js';
import { endOf } from './plugin-run.js';
import { texts, type SourceRule, type Stage } from './bench.js';

/** A loop that never rests takes all of the event loop; a client library that wakes now and then takes a hundredth. */
const BUSY_SHARE_MAX = 0.5;

/** A broker of the rig in the same process may hold what the plugin has let go of, such as a long poll, a while longer. */
const CLOSING_PATIENCE = 3;

/** What a plugin does to the process that it runs in. */
export const processRules: readonly SourceRule[] = [
  {
    name: 'rests-when-nothing-comes',
    sentence: 'A source without messages costs next to no processor time.',
    needs: ['reads-every-message'],
    alone: true,
    judge: async ({ open, run, until, quietMs }) => {
      const { connection } = await open();
      const reading = run(connection);
      await until(
        () => reading.states.at(-1)?.state === 'reading',
        () => `it does not report reading${endOf(reading)}`,
      );
      const before = performance.eventLoopUtilization();
      await new Promise((resolve) => setTimeout(resolve, quietMs));
      const { utilization } = performance.eventLoopUtilization(before);
      must(utilization < BUSY_SHARE_MAX, `without messages the event loop is busy for ${Math.round(utilization * 100)} % of the time`);
    },
  },
  {
    name: 'closes-what-it-opened',
    sentence: 'When `run` has resolved, nothing that it opened keeps the process alive.',
    needs: ['ends-when-everything-has-settled'],
    alone: true,
    judge: async (stage) => {
      const places = [await stage.open(), await stage.open(), await stage.open()];
      for (const place of places) await place.send(texts(['one']));
      const [warmUp, ...counted] = places.map((place) => () => readOne(stage, place.connection));
      await warmUp?.();
      await leavesNothing(async () => {
        for (const readOnce of counted) await readOnce();
      }, stage.withinMs * CLOSING_PATIENCE);
    },
  },
  {
    name: 'check-closes-what-it-opened',
    sentence: 'When `check` has settled, nothing that it opened keeps the process alive.',
    needs: ['check-accepts-what-can-be-read'],
    alone: true,
    judge: async ({ open, rig, check, withinMs }) => {
      const { connection } = await open();
      const refused = rig.wrongCredentials?.connection ?? rig.missing?.connection;
      const both = async () => {
        await check(connection);
        if (refused) await check(refused).catch(() => undefined);
      };
      await both();
      await leavesNothing(async () => {
        await both();
        await both();
      }, withinMs * CLOSING_PATIENCE);
    },
  },
  {
    name: 'lets-nothing-escape',
    sentence: 'In all of this no rejection went without a handler, and no error reached the process.',
    alone: true,
    judge: async ({ escapes }) => {
      // A rejection counts as unhandled one turn later.
      await new Promise((resolve) => setTimeout(resolve, 50));
      must(escapes.caught.length === 0, escapes.caught.slice(0, 3).join('\n'));
    },
  },
];

async function readOne({ run, untilHanded, withinMs }: Stage, connection: Record<string, unknown>): Promise<void> {
  const reading = run(connection);
  await untilHanded(reading);
  await reading.stop(withinMs);
}
