import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

/** A rule of a conformance suite. `Bench` is the context for testing it. */
export interface Rule<Rig, Bench> {
  readonly sentence: string;
  /**
   * Rules that must pass first, because their failure would also fail this rule. Default: the first
   * rule of the suite.
   */
  readonly needs?: readonly string[];
  /** Whether the rule must run alone, because it observes the whole process. */
  readonly alone?: boolean;
  /** Returns why the rule cannot be tested with this rig, or undefined if it can. */
  skip?(rig: Rig): string | undefined;
  /** Throws `Broken` or another error if the rule is violated. */
  test(bench: Bench): Promise<void>;
}

/** Thrown if a rule is violated. The message states the observation. */
export class Broken extends Error {}

export function reasonOf(error: unknown): string {
  if (error instanceof Broken) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** @param reason the observation, without a final period */
export function must(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new Broken(reason);
}

export function listed(rules: Readonly<Record<string, { readonly sentence: string }>>) {
  return Object.entries(rules).map(([name, { sentence }]) => ({ name, sentence }));
}

const POLL_MS = 20;

/** Returns the problem as a clause without a final period, or a falsy value if there is none. */
export type FindProblem = () => string | false | undefined | Promise<string | false | undefined>;

/** The maximum total wait while there is progress, as a multiple of `withinMs`. */
const PROGRESSES = 10;

/**
 * Waits until there is no problem. A changed problem, such as a higher count, is progress and
 * extends the wait, because a slow machine or broker does not violate a rule.
 */
export async function eventually(problem: FindProblem, withinMs: number): Promise<void> {
  const endMs = performance.now() + withinMs * PROGRESSES;
  let deadlineMs = 0;
  let before: string | undefined;
  for (let wrong = await problem(); wrong; wrong = await problem()) {
    const nowMs = performance.now();
    if (wrong !== before) deadlineMs = Math.min(nowMs + withinMs, endMs);
    if (nowMs > deadlineMs) throw new Broken(`${wrong}, within ${withinMs / 1000} s`);
    before = wrong;
    await sleep(POLL_MS);
  }
}

export async function always(problem: FindProblem, forMs: number): Promise<void> {
  const end = performance.now() + forMs;
  for (let isOver = false; ; isOver = performance.now() >= end) {
    const wrong = await problem();
    if (wrong) throw new Broken(wrong);
    if (isOver) return;
    await sleep(POLL_MS);
  }
}

/**
 * Resolves with the error.
 * @param otherwise the observation if `work` resolves, as the predicate of `what`
 */
export async function mustReject(
  work: Promise<unknown>,
  what: string,
  otherwise: string,
): Promise<unknown> {
  const rejected = await work.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  must(rejected !== undefined, `${what} ${otherwise}`);
  mustHaveFix(rejected.error, what);
  return rejected.error;
}

/** Does not check the class, which may be from another copy of `@gateway/plugin`. */
export function mustHaveFix(error: unknown, what: string): void {
  must(error instanceof Error, `${what} failed with ${String(error)}, which is no Error`);
  const { name, message, fix } = error as Error & { fix?: unknown };
  must(message.trim() !== '', `${what} failed with an error that has no message`);
  must(
    typeof fix === 'string' && fix.trim() !== '',
    `${what} failed with "${name}: ${message}", which has no fix; throw a PluginError with one`,
  );
}

export function mustNotTell(secrets: readonly string[], text: string, where: string): void {
  for (const secret of secrets)
    must(
      !text.includes(secret),
      `${where} contains a secret: ${text.replaceAll(secret, '***').slice(0, 300)}`,
    );
}

/** Client libraries keep the failed command, with its password, in a property of the error. */
export function everythingIn(error: unknown): string {
  return inspect(error, { depth: 10, maxArrayLength: null, maxStringLength: null });
}
