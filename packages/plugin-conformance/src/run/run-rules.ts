import type { ConformanceOptions, Openable, RuleResult } from './result.js';
import { Broken, type Rule } from './rule.js';
import { watchUnhandledErrors } from './process.js';

/** What a rule works with; each has its own. */
export class Bench<Plugin, Rig> {
  readonly plugin: Plugin;
  readonly rig: Rig;
  /** How long something that must happen may take. */
  readonly withinMs: number;
  /** How long to watch that something does not happen. */
  readonly quietMs: number;
  /** Unhandled rejections and uncaught exceptions so far. */
  readonly unhandled: readonly string[];

  constructor({ plugin, rig, withinMs, quietMs, unhandled }: BenchOptions<Plugin, Rig>) {
    this.plugin = plugin;
    this.rig = rig;
    this.withinMs = withinMs;
    this.quietMs = quietMs;
    this.unhandled = unhandled;
  }

  /** Ends what the rule has started, whether it passed or not. */
  close(): Promise<void> {
    return Promise.resolve();
  }
}

type BenchOptions<Plugin, Rig> = Omit<Bench<Plugin, Rig>, 'close'>;

/** The rules of one kind of plugin. */
export interface Suite<Plugin, Rig, RuleBench extends Bench<Plugin, Rig>> {
  readonly rules: readonly Rule<Rig, RuleBench>[];
  readonly bench: new (options: BenchOptions<Plugin, Rig>) => RuleBench;
  /** Collect unhandled errors, which would end the process, for a rule. */
  readonly collectsErrors: boolean;
}

interface Closable {
  close?(): Promise<void>;
}

/**
 * Runs the rules and yields their results in the order of the suite. Opens the rig, and closes it, when it is a function.
 * @throws what the rig throws when it is opened
 * @throws RangeError when `options.rules` names an unknown rule
 */
export async function* runSuite<Plugin, Rig extends Closable, RuleBench extends Bench<Plugin, Rig>>(
  suite: Suite<Plugin, Rig, RuleBench>,
  plugin: Plugin,
  rig: Openable<Rig>,
  options: ConformanceOptions,
): AsyncGenerator<RuleResult, void, void> {
  const { withinMs = 10_000, quietMs = 1_000 } = options;
  const opened = typeof rig === 'function' ? await rig() : rig;
  const errors = suite.collectsErrors ? watchUnhandledErrors() : undefined;
  try {
    yield* runRules(suite, { plugin, rig: opened, withinMs, quietMs, unhandled: errors?.caught ?? [] }, options);
  } finally {
    errors?.close();
    if (opened !== rig) await opened.close?.();
  }
}

/** Runs some rules at a time, then one after the other those that must run alone. */
async function* runRules<Plugin, Rig, RuleBench extends Bench<Plugin, Rig>>(
  suite: Suite<Plugin, Rig, RuleBench>,
  options: BenchOptions<Plugin, Rig>,
  { rules: wanted, atOnce = 6 }: ConformanceOptions,
): AsyncGenerator<RuleResult, void, void> {
  const { rules } = suite;
  const unknown = wanted?.filter((name) => !rules.some((rule) => rule.name === name)) ?? [];
  if (unknown.length > 0)
    throw new RangeError(`There is no rule ${unknown.join(', ')}; rules are: ${rules.map(({ name }) => name).join(', ')}.`);
  const slots = limiter(atOnce);
  const results = new Map<string, Promise<RuleResult>>();
  // A requested rule runs even when a rule that it needs was not requested.
  const requested = rules.filter(({ name }) => !wanted || wanted.includes(name));
  const start = (rule: Rule<Rig, RuleBench>): Promise<RuleResult> => {
    const started = results.get(rule.name);
    if (started) return started;
    const needed = requested.filter(({ name }) => rule.needs?.includes(name)).map(start);
    const before = rule.alone ? [...results.values()] : [];
    const result = Promise.all(before).then(async () => runRule(suite, rule, options, await Promise.all(needed), slots));
    results.set(rule.name, result);
    return result;
  };
  for (const alone of [false, true]) for (const rule of requested) if (Boolean(rule.alone) === alone) void start(rule);
  for (const rule of requested) yield (await results.get(rule.name)) as RuleResult;
}

const NOT_RUN = 'not run';

async function runRule<Plugin, Rig, RuleBench extends Bench<Plugin, Rig>>(
  suite: Suite<Plugin, Rig, RuleBench>,
  rule: Rule<Rig, RuleBench>,
  options: BenchOptions<Plugin, Rig>,
  needed: readonly RuleResult[],
  slots: <Result>(work: () => Promise<Result>) => Promise<Result>,
): Promise<RuleResult> {
  const about = { rule: rule.name, sentence: rule.sentence };
  const failed = needed.find((it) => it.outcome === 'failed' || (it.outcome === 'skipped' && it.reason.startsWith(NOT_RUN)));
  const reason = rule.skip?.(options.rig) ?? (failed && `${NOT_RUN}, because "${failed.rule}" does not hold`);
  if (reason !== undefined) return { ...about, outcome: 'skipped', reason, durationMs: 0 };
  return slots(async () => {
    const began = performance.now();
    const durationMs = () => Math.round(performance.now() - began);
    const bench = new suite.bench(options);
    try {
      await rule.test(bench).finally(() => bench.close());
      return { ...about, outcome: 'passed', durationMs: durationMs() };
    } catch (error) {
      const { message, stack } = error instanceof Error ? error : new Error(String(error));
      return { ...about, outcome: 'failed', reason: error instanceof Broken ? message : (stack ?? message), durationMs: durationMs() };
    }
  });
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
