/** Statements that fail: since when, and the latest error with its time. */
export interface Failing {
  readonly since: Date;
  readonly error: unknown;
  readonly at: Date;
}

/** The state after one more failure. */
export function failAgain(before: Failing | null | undefined, error: unknown): Failing {
  const at = new Date();
  return { since: before?.since ?? at, error, at };
}

/** The one that failed last. */
export function latestOf(all: readonly Failing[]): Failing | undefined {
  return all.reduce<Failing | undefined>((latest, one) => (latest && latest.at > one.at ? latest : one), undefined);
}
