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
