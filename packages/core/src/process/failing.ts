/** Failing statements: since when, the latest error and its time. */
export interface OngoingFailure {
  readonly since: Date;
  readonly error: unknown;
  readonly at: Date;
}

/** Adds a failure. */
export function failAgain(
  before: OngoingFailure | null | undefined,
  error: unknown,
): OngoingFailure {
  const at = new Date();
  return { since: before?.since ?? at, error, at };
}

/** Returns the latest failure. */
export function latestOf(all: readonly OngoingFailure[]): OngoingFailure | undefined {
  return all.reduce<OngoingFailure | undefined>(
    (latest, one) => (latest && latest.at > one.at ? latest : one),
    undefined,
  );
}
