import { watchEscapes, type Escapes } from './unhandled-errors.js';
import type { ConformanceOptions, Openable, RuleResult } from './result.js';

/** One rule of a suite: what a plugin must do, and how to see whether it does. `Bench` is what the rules of the suite work with. */
export interface Rule<Bench> {
  readonly name: string;
  readonly sentence: string;
  /** Rules that must hold for this one to be judged: what breaks them would be seen here as well, and would be told twice. */
  readonly needs?: readonly string[];
  /** Looks at the whole process, so nothing else may run meanwhile. */
  readonly alone?: true;
  /** Why it cannot be judged with this rig, or undefined. */
  lacks?(bench: Bench): string | undefined;
  /** Resolves when the rule holds; throws `Broken` or any other error with what was seen when not. */
  judge(bench: Bench): Promise<void>;
}

/** What was seen is not what the rule says. */
export class Broken extends Error {}

/** Refuses what is not so. @param reason what was seen, as a sentence without its full stop */
export function must(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new Broken(reason);
}

/** The name and sentence of each rule, as documentation lists them. */
export function listed(rules: readonly Rule<never>[]): readonly { readonly name: string; readonly sentence: string }[] {
  return rules.map(({ name, sentence }) => ({ name, sentence }));
}

/**
 * Judges the rules, some at a time, then those that want to be alone one after the other, and gives the results in the order of the table.
 * @throws when `options.rules` names a rule that there is not
 */
export async function* judgeAll<Bench>(
  rules: readonly Rule<Bench>[],
  bench: Bench,
  { rules: wanted, atOnce = 6 }: ConformanceOptions,
): AsyncGenerator<RuleResult, void, void> {
  const unknown = wanted?.filter((name) => !rules.some((rule) => rule.name === name)) ?? [];
  if (unknown.length > 0)
    throw new RangeError(`There is no rule ${unknown.join(', ')}; rules are: ${rules.map(({ name }) => name).join(', ')}.`);
  const places = turns(atOnce);
  const results = new Map<string, Promise<RuleResult>>();
  // A rule that is asked for is judged, also when one that it needs was not asked for.
  const judged = rules.filter(({ name }) => !wanted || wanted.includes(name));
  const start = (rule: Rule<Bench>): Promise<RuleResult> => {
    const started = results.get(rule.name);
    if (started) return started;
    const needs = judged.filter(({ name }) => rule.needs?.includes(name)).map(start);
    const before = rule.alone ? [...results.values()] : [];
    const result = Promise.all([...before, ...needs]).then((ended) => judgeOne(rule, bench, ended.slice(before.length), places));
    results.set(rule.name, result);
    return result;
  };
  for (const rule of judged.filter(({ alone }) => !alone)) void start(rule);
  for (const rule of judged.filter(({ alone }) => alone)) void start(rule);
  for (const rule of judged) yield (await results.get(rule.name)) as RuleResult;
}

async function judgeOne<Bench>(
  rule: Rule<Bench>,
  bench: Bench,
  needed: readonly RuleResult[],
  place: <Result>(work: () => Promise<Result>) => Promise<Result>,
): Promise<RuleResult> {
  const about = { rule: rule.name, sentence: rule.sentence };
  const broken = needed.find(({ outcome, ...it }) => outcome === 'failed' || ('reason' in it && it.reason.startsWith(NOT_JUDGED)));
  const absent = rule.lacks?.(bench);
  if (absent !== undefined) return { ...about, outcome: 'skipped', reason: absent, durationMs: 0 };
  if (broken) return { ...about, outcome: 'skipped', reason: `${NOT_JUDGED}, because "${broken.rule}" does not hold`, durationMs: 0 };
  return place(async () => {
    const began = performance.now();
    const durationMs = () => Math.round(performance.now() - began);
    try {
      await rule.judge(bench);
      return { ...about, outcome: 'passed', durationMs: durationMs() };
    } catch (error) {
      const { message, stack } = error instanceof Error ? error : new Error(String(error));
      return { ...about, outcome: 'failed', reason: error instanceof Broken ? message : (stack ?? message), durationMs: durationMs() };
    }
  });
}

const NOT_JUDGED = 'not judged';

/** Lets so many pieces of work run at a time; the others wait for their turn. */
function turns(atOnce: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  return async (work) => {
    if (underWay >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    else underWay++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else underWay--;
    }
  };
}

/** Opens the rig when it is not open yet, works with it, and closes what was opened here. */
export async function* withRig<Rig extends { close?(): Promise<void> }>(
  rig: Openable<Rig>,
  work: (rig: Rig) => AsyncIterable<RuleResult>,
): AsyncGenerator<RuleResult, void, void> {
  if (typeof rig !== 'function') {
    yield* work(rig);
    return;
  }
  const opened = await rig();
  try {
    yield* work(opened);
  } finally {
    await opened.close?.();
  }
}

/** What the benches of sources and tracers have in common. */
export interface Watched<Plugin, Rig> {
  readonly plugin: Plugin;
  readonly rig: Rig;
  /** How long something that must happen may take. */
  readonly withinMs: number;
  /** How long it is watched that something does not happen. */
  readonly quietMs: number;
  readonly escapes: Escapes;
}

/** Judges a plugin by the rules while it is watched for what escapes it. */
export function judgeWatched<Plugin, Rig extends { close?(): Promise<void> }>(
  rules: readonly Rule<Watched<Plugin, Rig>>[],
  plugin: Plugin,
  rig: Openable<Rig>,
  options: ConformanceOptions,
): AsyncIterable<RuleResult> {
  return withRig(rig, async function* (opened) {
    const { withinMs = 10_000, quietMs = 1_000 } = options;
    const escapes = watchEscapes();
    try {
      yield* judgeAll(rules, { plugin, rig: opened, withinMs, quietMs, escapes }, options);
    } finally {
      escapes.close();
    }
  });
}
