import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

/** `Bench` is the context of a test. */
export interface Rule<Rig, Bench> {
  readonly sentence: string;
  /**
   * Rules that must pass first: their failure would also fail this rule. Default: the first rule of
   * the suite.
   */
  readonly needs?: readonly string[];
  /** Observes the whole process, so no other rule may run. */
  readonly alone?: boolean;
  /** Returns why this rig cannot run the rule, if so. */
  skip?(rig: Rig): string | undefined;
  /** Throws `Broken` or another error if the rule does not hold. */
  test(bench: Bench): Promise<void>;
}

/** A rule does not hold: the message is an observation. */
export class Broken extends Error {}

/** Returns the message of a `Broken`, or the stack of another error. */
export function reasonOf(error: unknown): string {
  if (error instanceof Broken) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** @param reason the observation, without a full stop */
export function must(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new Broken(reason);
}

/** Returns the rules for the documentation. */
export function listed(rules: Readonly<Record<string, { readonly sentence: string }>>) {
  return Object.entries(rules).map(([name, { sentence }]) => ({ name, sentence }));
}

const POLL_MS = 20;

/** Returns the problem without a full stop, or a falsy value. */
export type FindProblem = () => string | false | undefined | Promise<string | false | undefined>;

/** Multiple of `withinMs` for which progress can extend a wait. */
const PROGRESSES = 10;

/**
 * Waits until there is no problem. A problem in other words, such as a higher count, is progress:
 * a slow machine or broker breaks no rule.
 * @throws `Broken` with the problem after `withinMs` without progress
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

/**
 * Checks for `forMs` that there is no problem.
 * @throws `Broken` with the problem
 */
export async function always(problem: FindProblem, forMs: number): Promise<void> {
  const end = performance.now() + forMs;
  for (let isOver = false; ; isOver = performance.now() >= end) {
    const wrong = await problem();
    if (wrong) throw new Broken(wrong);
    if (isOver) return;
    await sleep(POLL_MS);
  }
}

/** Requires a rejection with a sentence and a fix. `otherwise` is the reason if it resolves. */
export async function mustReject(
  work: Promise<unknown>,
  what: string,
  otherwise: string,
): Promise<unknown> {
  const rejected = await work.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  must(rejected !== undefined, otherwise);
  mustHaveFix(rejected.error, what);
  return rejected.error;
}

/**
 * Requires a sentence and a fix, as in a `PluginError`, also from another copy of
 * `@gateway/plugin`.
 */
export function mustHaveFix(error: unknown, what: string): void {
  must(error instanceof Error, `${what} failed with ${String(error)}, which is no Error`);
  const { name, message, fix } = error as Error & { fix?: unknown };
  must(message.trim() !== '', `${what} failed with an error that has no message`);
  must(
    typeof fix === 'string' && fix.trim() !== '',
    `${what} failed with "${name}: ${message}", which has no fix; throw a PluginError with one`,
  );
}

/** Throws `Broken`, with secrets masked, if the text contains one. `where` names the text. */
export function mustNotTell(secrets: readonly string[], text: string, where: string): void {
  for (const secret of secrets)
    must(
      !text.includes(secret),
      `${where} contains a secret: ${text.replaceAll(secret, '***').slice(0, 300)}`,
    );
}

/**
 * Returns all of an error as text: client libraries keep the failed command, with its password, in
 * a property.
 */
export function everythingIn(error: unknown): string {
  return inspect(error, { depth: 10, maxArrayLength: null, maxStringLength: null });
}

/** Returns the messages and fixes of an error and its causes. */
export function toldBy(error: unknown): string {
  const parts: unknown[] = [];
  const seen = new Set<unknown>();
  for (
    let at = error;
    at !== undefined && at !== null && !seen.has(at);
    at = (at as { cause?: unknown }).cause
  ) {
    seen.add(at);
    const { message, fix } = at as { message?: unknown; fix?: unknown };
    parts.push(message, fix);
  }
  return parts.filter((part) => typeof part === 'string').join(' ');
}
