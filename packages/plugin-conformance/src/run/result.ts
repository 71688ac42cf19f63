/** What the suite has found about one rule. */
export type RuleResult = {
  /** The name of the rule, for example `acknowledges-only-after-the-outcome`. */
  readonly rule: string;
  /** What the rule says. */
  readonly sentence: string;
  readonly durationMs: number;
} & (
  | { readonly outcome: 'passed' }
  /** `reason` says what was seen in place of what the rule says. */
  | { readonly outcome: 'failed'; readonly reason: string }
  /** `reason` says what the rig would have to give, or which broken rule makes this one impossible to judge. */
  | { readonly outcome: 'skipped'; readonly reason: string }
);

export interface ConformanceOptions {
  /** Judge only these rules, by name. Without it all of them. */
  readonly rules?: readonly string[];
  /** How long something that must happen may take, in milliseconds; 10,000 without it. */
  readonly withinMs?: number;
  /** How long it is watched that something does not happen, in milliseconds; 1,000 without it. */
  readonly quietMs?: number;
  /** Rules of a source that are judged at a time, each with a place of its own; 6 without it. */
  readonly atOnce?: number;
}

/** What a suite takes as its rig: an open one, which the caller closes, or a function that opens one, which the suite closes. */
export type Openable<Rig> = Rig | (() => Rig | Promise<Rig>);
