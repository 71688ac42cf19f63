import type { SourcePlugin } from '@gateway/plugin';
import { settles } from '@gateway/plugin';
import { must, type Rule, type Watched } from '../run/judge.js';
import type { BreakablePlace, Place, SentMessage, SourceRig } from './rig.js';
import { always, eventually } from '../run/wait.js';
import { endOf, startRun, type Run, type RunOptions } from './plugin-run.js';

/** What every rule of a source has at hand. */
export type SourceBench = Watched<SourcePlugin, SourceRig>;

/** The bench for one rule: what the rule starts here is ended after it, whether it holds or not. */
export interface Stage extends SourceBench {
  /** The settings of the rig. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Makes an empty place, a topic with so many partitions. */
  open(partitions?: number): Promise<Place>;
  /** The second partition of a topic; a queue has only the first. */
  readonly second: 0 | 1;
  openBreakable(): Promise<BreakablePlace>;
  /** Calls `run` of the plugin. */
  run(connection: Place['connection'], options?: RunOptions): Run;
  /** Calls `check`. @throws `Broken` when it takes longer than the contract gives it */
  check(connection: Place['connection'], signal?: AbortSignal): Promise<void>;
  /** Waits until it holds, and fails with the reason when it does not. */
  until(condition: () => boolean | Promise<boolean>, reason: () => string, withinMs?: number): Promise<void>;
  /** Waits until the run has handed a message over. */
  untilHanded(run: Run): Promise<void>;
  /** Watches for a while that it holds. */
  stays(condition: () => boolean | Promise<boolean>, reason: () => string): Promise<void>;
  /** Waits until that many messages are counted as unacknowledged. */
  untilUnacknowledged(place: Place, count: number): Promise<void>;
}

/** A rule of sources. */
export interface SourceRule extends Omit<Rule<SourceBench>, 'judge'> {
  judge(stage: Stage): Promise<void>;
}

/** The contract gives `check` ten seconds, which is what `withinMs` is by default; the rest is for the machine. */
const CHECK_SHARE = 1.05;
/** Of `withinMs`, for what a rule has left open; its own result is told either way. */
const CLEANUP_SHARE = 0.5;

/** The rule as the judge knows rules. */
export function onStage(rule: SourceRule): Rule<SourceBench> {
  return {
    ...rule,
    judge: async (bench) => {
      const runs: Run[] = [];
      try {
        await rule.judge(stageOf(bench, runs));
      } finally {
        for (const run of runs) run.letGo();
        await settles(Promise.all(runs.map(({ over }) => over)), bench.withinMs * CLEANUP_SHARE);
      }
    },
  };
}

function stageOf(bench: SourceBench, runs: Run[]): Stage {
  const { plugin, rig, withinMs, quietMs } = bench;
  const settings = rig.settings ?? {};
  const until: Stage['until'] = (condition, reason, ms = withinMs) => eventually(condition, { withinMs: ms, reason });
  return {
    ...bench,
    settings,
    second: rig.shape === 'topic' ? 1 : 0,
    open: (partitions = 1) => rig.open({ partitions: rig.shape === 'topic' ? partitions : 1 }),
    openBreakable: () => (rig.openBreakable as () => Promise<BreakablePlace>)(),
    run: (connection, options) => {
      const run = startRun(plugin, connection, settings, options);
      runs.push(run);
      return run;
    },
    check: async (connection, signal = new AbortController().signal) => {
      const checked = Promise.resolve().then(() => plugin.check(connection, { settings, signal }));
      must(await settles(checked, withinMs * CHECK_SHARE), `\`check\` has not settled after ${withinMs / 1000} s`);
      return checked;
    },
    until,
    untilHanded: (run) =>
      until(
        () => run.handed.length > 0,
        () => `the message was not handed over${endOf(run)}`,
      ),
    stays: (condition, reason) => always(condition, { forMs: quietMs, reason }),
    untilUnacknowledged: async (place, count) => {
      let counted = -1;
      await until(
        async () => (counted = await place.unacknowledged()) === count,
        () => `the broker counts ${counted} unacknowledged messages where ${count} were expected`,
      );
    },
  };
}

/** Messages with these bodies, for one partition. */
export function texts(bodies: readonly string[], partition = 0): SentMessage[] {
  return bodies.map((body) => ({ body: Buffer.from(body), headers: {}, partition }));
}

/** Bodies `first`, `first + 1`, … as text. */
export function numbers(count: number, first = 0): string[] {
  return Array.from({ length: count }, (_, at) => String(first + at));
}
