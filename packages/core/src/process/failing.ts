/** Failing statements: since when, the latest error and its time. */
export interface Failing {
  readonly since: Date;
  readonly error: unknown;
  readonly at: Date;
}

/** Adds a failure. */
export function failAgain(before: Failing | null | undefined, error: unknown): Failing {
  const at = new Date();
  return { since: before?.since ?? at, error, at };
}

/** Returns the latest failure. */
export function latestOf(all: readonly Failing[]): Failing | undefined {
  return all.reduce<Failing | undefined>(
    (latest, one) => (latest && latest.at > one.at ? latest : one),
    undefined,
  );
}
