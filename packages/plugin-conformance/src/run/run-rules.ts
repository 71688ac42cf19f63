import { Broken, type Rule } from './rule.js';
import { watchUnhandledErrors } from './process.js';

/** The result of one rule. */
export type RuleResult = {
  /** Name of the rule, for example `acknowledges-only-after-the-outcome`. */
  readonly rule: string;
  readonly sentence: string;
  readonly durationMs: number;
} & (
  | { readonly outcome: 'passed' }
  /** `reason`: what was observed. */
  | { readonly outcome: 'failed'; readonly reason: string }
  /** `reason`: what the rig does not provide, or which failed rule this one depends on. */
  | { readonly outcome: 'skipped'; readonly reason: string }
);

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
  /** By name, in the order of their results. */
  readonly rules: Readonly<Record<string, Rule<Rig, RuleBench>>>;
  readonly bench: new (options: BenchOptions<Plugin, Rig>) => RuleBench;
  /** Collect unhandled errors, which would end the process, for a rule. */
  readonly collectsErrors: boolean;
}

/**
 * Runs the rules and yields their results in the order of the suite. Opens the rig, and closes it, when it is a function.
 * @throws what the rig throws when it is opened
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
  const opened = typeof rig === 'function' ? await rig() : rig;
  const errors = suite.collectsErrors ? watchUnhandledErrors() : undefined;
  const options = { plugin, rig: opened, withinMs, quietMs, unhandled: errors?.caught ?? [] };
  const limited = limiter(atOnce);
  const results = new Map<string, Promise<RuleResult>>();
  /** Starts the rules that it needs, waits for them, and, if it must run alone, for every rule started so far. */
  const start = (name: string): Promise<RuleResult> => {
    const started = results.get(name);
    if (started) return started;
    const rule = suite.rules[name]!;
    const needed = requested.filter((other) => rule.needs?.includes(other)).map(start);
    const before = rule.alone ? [...results.values()] : [];
    const result = Promise.all(before).then(async () => {
      const reason = rule.skip?.(opened) ?? failureOf(await Promise.all(needed));
      const about = { rule: name, sentence: rule.sentence };
      if (reason !== undefined) return { ...about, outcome: 'skipped' as const, reason, durationMs: 0 };
      return limited(async () => ({ ...about, ...(await runRule(rule, new suite.bench(options))) }));
    });
    results.set(name, result);
    return result;
  };
  try {
    for (const alone of [false, true]) for (const name of requested) if (Boolean(suite.rules[name]!.alone) === alone) void start(name);
    for (const name of requested) yield (await results.get(name)) as RuleResult;
  } finally {
    errors?.close();
    if (opened !== rig) await opened.close?.();
  }
}

const NOT_RUN = 'not run';

/** Why a rule that needs these cannot run. */
function failureOf(needed: readonly RuleResult[]): string | undefined {
  const failed = needed.find((it) => it.outcome === 'failed' || (it.outcome === 'skipped' && it.reason.startsWith(NOT_RUN)));
  return failed && `${NOT_RUN}, because "${failed.rule}" does not hold`;
}

async function runRule<Plugin, Rig, RuleBench extends Bench<Plugin, Rig>>(rule: Rule<Rig, RuleBench>, bench: RuleBench) {
  const began = performance.now();
  const durationMs = () => Math.round(performance.now() - began);
  try {
    await rule.test(bench).finally(() => bench.close());
    return { outcome: 'passed' as const, durationMs: durationMs() };
  } catch (error) {
    const { message, stack } = error instanceof Error ? error : new Error(String(error));
    const reason = error instanceof Broken ? message : (stack ?? message);
    return { outcome: 'failed' as const, reason, durationMs: durationMs() };
  }
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
