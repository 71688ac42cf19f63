/** One rule of a suite. `Bench` is what its rules work with. */
export interface Rule<Rig, Bench> {
  readonly name: string;
  readonly sentence: string;
  /** Rules that must pass first: a plugin that breaks them would fail here for the same fault. */
  readonly needs?: readonly string[];
  /** Observes the whole process, so no other rule may run at the same time. */
  readonly alone?: boolean;
  /** Why this rig cannot run the rule, or undefined. */
  skip?(rig: Rig): string | undefined;
  /** Resolves when the rule holds; throws `Broken`, or any other error, when it does not. */
  test(bench: Bench): Promise<void>;
}

/** A rule does not hold. The message says what was observed. */
export class Broken extends Error {}

/** @param reason what was observed, as a sentence without its full stop */
export function must(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new Broken(reason);
}

/** The name and sentence of each rule, as the documentation lists them. */
export function listed(rules: readonly Rule<never, never>[]): readonly { readonly name: string; readonly sentence: string }[] {
  return rules.map(({ name, sentence }) => ({ name, sentence }));
}
