import { PluginError, settles } from '@gateway/plugin';
import { blaming } from './blame.js';
import { reasonOf, type Rule } from './rule.js';
import { letsNothingEscape, watchUnhandledErrors } from './process.js';

export type RuleResult = {
  /** Name of the rule, for example `acknowledges-only-after-the-outcome`. */
  readonly rule: string;
  readonly sentence: string;
  readonly durationMs: number;
  /** `reason`: what was observed, what the rig does not provide, or which failed rule this one depends on. */
} & ({ readonly outcome: 'passed' } | { readonly outcome: 'failed' | 'skipped'; readonly reason: string });

export interface ConformanceOptions {
  /** Names of the rules to run; all by default. */
  readonly rules?: readonly string[];
  /** How long something that must happen may take, in milliseconds; 10,000 by default. */
  readonly withinMs?: number;
  /** How long to watch that something does not happen, in milliseconds; 1,000 by default. */
  readonly quietMs?: number;
  /** Rules of a source that run at a time, each with its own queue or topic; 6 by default. */
  readonly atOnce?: number;
}

/** The rig of a suite: an open one, which the caller closes, or a function that opens one, which the suite closes. */
export type Openable<Rig> = Rig | (() => Rig | Promise<Rig>);

/** How long to wait for each thing that a rule has started: the contract gives `close` five seconds. */
const CLEANUP_MS = 5_500;

/** What one rule works with: the plugin, the rig, and time limits in milliseconds. */
export class Bench<Plugin, Rig> {
  readonly #cleanups: (() => unknown)[] = [];

  constructor(
    readonly plugin: Plugin,
    readonly rig: Rig,
    /** How long something that must happen may take. */
    readonly withinMs: number,
    /** How long to watch that something does not happen. */
    readonly quietMs: number,
    /** Unhandled rejections and uncaught exceptions so far. */
    readonly unhandled: readonly string[],
  ) {}

  /** For whatever the rule starts: `end` is called when the rule is over, whether it passed or not, the newest first. */
  cleanup(end: () => unknown): void {
    this.#cleanups.unshift(end);
  }

  /** Ends what the rule has started. Never rejects. */
  async close(): Promise<void> {
    for (const end of this.#cleanups) await settles(Promise.resolve().then(end), CLEANUP_MS);
  }
}

export interface Suite<Plugin, Rig, RuleBench extends Bench<Plugin, Rig>> {
  /** By name, in the order of their results. */
  readonly rules: Readonly<Record<string, Rule<Rig, RuleBench>>>;
  readonly bench: new (...given: ConstructorParameters<typeof Bench<Plugin, Rig>>) => RuleBench;
}

/**
 * Runs the rules and yields their results in the order of the suite. Opens the rig, and closes it, when it is a function.
 * @throws `PluginError` when the rig fails to open or to close
 * @throws RangeError when `options.rules` names an unknown rule
 */
export async function* runSuite<Plugin, Rig extends { close?(): Promise<void> }, RuleBench extends Bench<Plugin, Rig>>(
  suite: Suite<Plugin, Rig, RuleBench>,
  plugin: Plugin,
  rig: Openable<Rig>,
  { rules: wanted, withinMs = 10_000, quietMs = 1_000, atOnce = 6 }: ConformanceOptions,
): AsyncGenerator<RuleResult, void, void> {
  const names = Object.keys(suite.rules);
  const unknown = wanted?.filter((name) => !names.includes(name)) ?? [];
  if (unknown.length > 0) throw new RangeError(`There is no rule ${unknown.join(', ')}; rules are: ${names.join(', ')}.`);
  // A requested rule runs even when a rule that it needs was not requested.
  const requested = names.filter((name) => !wanted || wanted.includes(name));
  const opened = typeof rig === 'function' ? await Promise.resolve().then(rig).catch(failed('open')) : rig;
  // Only where a rule reports them: they would end the process otherwise.
  const errors = Object.values(suite.rules).includes(letsNothingEscape) ? watchUnhandledErrors() : undefined;
  const limited = limiter(atOnce);
  const results = new Map<string, Promise<RuleResult>>();
  const start = (name: string): Promise<RuleResult> => {
    const result = results.get(name) ?? run(name);
    results.set(name, result);
    return result;
  };
  /** Starts the rules that it needs, waits for them, and, if it must run alone, for every rule started so far. */
  const run = async (name: string): Promise<RuleResult> => {
    const { sentence, needs = names.slice(0, 1), alone, skip, test } = suite.rules[name]!;
    const about = { rule: name, sentence };
    const needed = requested.filter((other) => needs.includes(other) && other !== name).map(start);
    await Promise.all(alone ? [...results.values()] : []);
    const reason = skip?.(opened) ?? failureOf(await Promise.all(needed));
    if (reason !== undefined) return { ...about, outcome: 'skipped', reason, durationMs: 0 };
    return limited(async () => {
      const bench = new suite.bench(plugin, blaming(opened, 'rig'), withinMs, quietMs, errors?.caught ?? []);
      const began = performance.now();
      const broken = await test(bench)
        .finally(() => bench.close())
        .then(() => undefined, reasonOf);
      const durationMs = Math.round(performance.now() - began);
      return broken === undefined
        ? { ...about, outcome: 'passed', durationMs }
        : { ...about, outcome: 'failed', reason: broken, durationMs };
    });
  };
  try {
    for (const alone of [false, true]) for (const name of requested) if (Boolean(suite.rules[name]!.alone) === alone) void start(name);
    for (const name of requested) yield (await results.get(name)) as RuleResult;
  } finally {
    errors?.close();
    if (opened !== rig) await opened.close?.().catch(failed('close'));
  }
}

const failed = (to: 'open' | 'close') => (cause: unknown) => {
  throw new PluginError(`The conformance rig failed to ${to}: ${reasonOf(cause)}`, {
    fix: 'Repair the conformance module of the package.',
    cause,
  });
};

const NOT_RUN = 'not run';

function failureOf(needed: readonly RuleResult[]): string | undefined {
  const failed = needed.find((it) => it.outcome === 'failed' || (it.outcome === 'skipped' && it.reason.startsWith(NOT_RUN)));
  return failed && `${NOT_RUN}, because "${failed.rule}" failed`;
}

/** Runs at most so many pieces of work at a time; the others queue. */
function limiter(atOnce: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const queue: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= atOnce) await new Promise<void>((resolve) => queue.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      const next = queue.shift();
      if (next) next();
      else running--;
    }
  };
}
