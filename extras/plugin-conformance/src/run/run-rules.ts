import { PluginError, settles } from '@gateway/plugin';
import { blaming } from './blame.js';
import { reasonOf, type Rule } from './rule.js';
import { letsNothingEscape, watchUnhandledErrors } from './process.js';

export type RuleResult = {
  /** The name of the rule, such as `acknowledges-only-after-the-outcome`. */
  readonly rule: string;
  readonly sentence: string;
  readonly durationMs: number;
  /**
   * `reason` is the observation, the ability that the rig lacks, or the failed rule that this rule
   * needs.
   */
} & (
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'failed' | 'skipped'; readonly reason: string }
);

export interface ConformanceOptions {
  /** The names of the rules to run. Default: all. */
  readonly rules?: readonly string[];
  /** The time limit for an expected effect without progress. Default: 10,000. */
  readonly withinMs?: number;
  /** The time to watch for unwanted effects. Default: 1,000. */
  readonly quietMs?: number;
  /**
   * The number of rules to run concurrently. Default: 6. Source rules have separate queues or
   * topics, and tracer rules always run one at a time.
   */
  readonly atOnce?: number;
}

/** An open rig, closed by the caller, or a function that opens one, closed by the suite. */
export type Openable<Rig> = Rig | (() => Rig | Promise<Rig>);

/** The time limit for closing a resource. The contract allows five seconds for `close`. */
const CLEANUP_MS = 5_500;

export class Bench<Plugin, Rig> {
  readonly #cleanups: (() => unknown)[] = [];

  constructor(
    readonly plugin: Plugin,
    readonly rig: Rig,
    readonly withinMs: number,
    readonly quietMs: number,
    readonly unhandled: readonly string[],
  ) {}

  /** The function is called when the rule ends, passed or not, the last one first. */
  cleanup(end: () => unknown): void {
    this.#cleanups.unshift(end);
  }

  async close(): Promise<void> {
    for (const end of this.#cleanups) await settles(Promise.resolve().then(end), CLEANUP_MS);
  }
}

export interface Suite<Plugin, Rig, RuleBench extends Bench<Plugin, Rig>> {
  readonly rules: Readonly<Record<string, Rule<Rig, RuleBench>>>;
  readonly bench: new (...given: ConstructorParameters<typeof Bench<Plugin, Rig>>) => RuleBench;
}

/**
 * Yields the results of the rules in order. Opens and closes a rig given as a function.
 * @throws `PluginError` if the rig fails to open or close
 * @throws RangeError for an unknown name in `options.rules`
 */
export async function* runSuite<
  Plugin,
  Rig extends { close?(): Promise<void> },
  RuleBench extends Bench<Plugin, Rig>,
>(
  suite: Suite<Plugin, Rig, RuleBench>,
  plugin: Plugin,
  rig: Openable<Rig>,
  { rules: wanted, withinMs = 10_000, quietMs = 1_000, atOnce = 6 }: ConformanceOptions,
): AsyncGenerator<RuleResult, void, void> {
  const names = Object.keys(suite.rules);
  const unknown = wanted?.filter((name) => !names.includes(name)) ?? [];
  if (unknown.length > 0)
    throw new RangeError(`There is no rule ${unknown.join(', ')}; rules are: ${names.join(', ')}.`);
  // A requested rule runs even if a rule that it needs was not requested.
  const requested = names.filter((name) => !wanted || wanted.includes(name));
  const opened =
    typeof rig === 'function' ? await Promise.resolve().then(rig).catch(failed('open')) : rig;
  // Collect unhandled errors only if a rule reports them. Otherwise, they must end the process.
  const errors = Object.values(suite.rules).includes(letsNothingEscape)
    ? watchUnhandledErrors()
    : undefined;
  const limited = limiter(atOnce);
  const results = new Map<string, Promise<RuleResult>>();
  const start = (name: string): Promise<RuleResult> => {
    const result = results.get(name) ?? run(name);
    results.set(name, result);
    return result;
  };
  /**
   * Runs a rule after the rules it needs and, if it must run alone, after all rules started so far.
   */
  const run = async (name: string): Promise<RuleResult> => {
    const { sentence, needs = names.slice(0, 1), alone, skip, test } = suite.rules[name]!;
    const about = { rule: name, sentence };
    const needed = requested.filter((other) => needs.includes(other) && other !== name).map(start);
    await Promise.all(alone ? [...results.values()] : []);
    const reason = skip?.(opened) ?? failureOf(await Promise.all(needed));
    if (reason !== undefined) return { ...about, outcome: 'skipped', reason, durationMs: 0 };
    return limited(async () => {
      const bench = new suite.bench(
        plugin,
        blaming(opened, 'rig'),
        withinMs,
        quietMs,
        errors?.caught ?? [],
      );
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
    for (const alone of [false, true])
      for (const name of requested)
        if (Boolean(suite.rules[name]!.alone) === alone) void start(name);
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
  const failed = needed.find(
    (it) => it.outcome === 'failed' || (it.outcome === 'skipped' && it.reason.startsWith(NOT_RUN)),
  );
  return failed && `${NOT_RUN}, because "${failed.rule}" failed`;
}

/** Returns a function that runs at most `atOnce` tasks at a time and queues the rest. */
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
