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
  /** Exit status of a command that ends with this error: 1 failed, 2 wrong use. */
  readonly exit: 1 | 2;
  /** Status of an HTTP response that carries it. */
  readonly http: number;
  /** What failed, where, and why as far as known. */
  readonly message: (details: Details) => string;
  /** What to do, in the imperative. */
  readonly fix: (details: Details) => string;
}

export type None = Record<never, never>;

/** A text with details in braces, or a function of the details. */
type Sentence = string | ((details: never) => string);
type Named<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [Key in Name]: string | number } & Named<Rest>
  : None;
type DetailsOf<It> = It extends string ? Named<It> : It extends (details: infer Details) => string ? Details : never;

/** Returns a row of the error table. `{name}` in a text is replaced by that detail of the error. */
export function row<const Message extends Sentence, const Fix extends Sentence>(
  http: number,
  message: Message,
  fix: Fix,
  exit: 1 | 2 = 1,
): ErrorRow<DetailsOf<Message> & DetailsOf<Fix>> {
  return { exit, http, message: filledIn(message), fix: filledIn(fix) };
}

function filledIn(sentence: Sentence): (details: unknown) => string {
  if (typeof sentence === 'function') return sentence as (details: unknown) => string;
  return (details) => sentence.replace(/\{(\w+)\}/g, (_, name: string) => String((details as Record<string, unknown>)[name]));
}

/** A row whose sentence and fix are composed where the error is raised. */
export const composed = (http = 500, exit: 1 | 2 = 1) => row(http, '{sentence}', '{fix}', exit);

export const listed = (lines: readonly { readonly sentence: string }[]) => lines.map(({ sentence }) => `  ${sentence}`).join('\n');
