/** One mistake in the settings: which, from where, and a whole sentence. */
export interface Problem {
  readonly key: string;
  /** A flag (`--port`), a variable (`AGENT_PORT`) or the file (`./gateway.json`). */
  readonly origin: string;
  readonly sentence: string;
}

/** One mistake in a request: a path into the body, and what is wrong there. */
export interface InvalidField {
  readonly field: string;
  readonly sentence: string;
}

/** One error: what it says, how to fix it, and the statuses it ends with. */
export interface ErrorRow<Details> {
  /** Exit status of a command that ends with this error: 1 failed (the default), 2 wrong use. */
  readonly exit: 1 | 2;
  /** Status of an HTTP response that carries it; 500 by default. */
  readonly http: number;
  /** What failed, where, and why as far as known. */
  readonly message: (details: Details) => string;
  /** What to do, in the imperative. */
  readonly fix: (details: Details) => string;
}

export type None = Record<never, never>;

export function row<Details = None>(it: Partial<ErrorRow<Details>> & Pick<ErrorRow<Details>, 'message' | 'fix'>): ErrorRow<Details> {
  return { exit: 1, http: 500, ...it };
}

/** A row whose sentence and fix are composed where the error is raised. */
export const composed = (statuses: Partial<Pick<ErrorRow<unknown>, 'exit' | 'http'>> = {}) =>
  row<{ sentence: string; fix: string }>({ ...statuses, message: ({ sentence }) => sentence, fix: ({ fix }) => fix });

export const listed = (lines: readonly { readonly sentence: string }[]) => lines.map(({ sentence }) => `  ${sentence}`).join('\n');
