export interface SettingProblem {
  readonly key: string;
  /** A flag (`--port`), a variable (`AGENT_PORT`) or the file (`./gateway.json`). */
  readonly origin: string;
  readonly sentence: string;
}

/** `field` is a path into the body. */
export interface InvalidField {
  readonly field: string;
  readonly sentence: string;
}

/** A row of the error table. */
export interface ErrorRow<Details> {
  /** Exit status of a command: 1 failure, 2 wrong use. */
  readonly exit: 1 | 2;
  readonly http: number;
  /** The failure, its place, and the cause if known. */
  readonly message: (details: Details) => string;
  readonly fix: (details: Details) => string;
}

export type None = Record<never, never>;

/** A text with `{detail}` placeholders, or a function of the details. */
type Sentence = string | ((details: never) => string);
type Named<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [Key in Name]: string | number } & Named<Rest>
  : None;
type DetailsOf<It> = It extends string
  ? Named<It>
  : It extends (details: infer Details) => string
    ? Details
    : never;

/** Returns a row. Details replace their `{name}` in a text. */
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
  return (details) =>
    sentence.replace(/\{(\w+)\}/g, (_, name: string) =>
      String((details as Record<string, unknown>)[name]),
    );
}

/** A row for errors that bring their own texts. */
export const composed = (http = 500, exit: 1 | 2 = 1) => row(http, '{sentence}', '{fix}', exit);

export const listed = (lines: readonly { readonly sentence: string }[]) =>
  lines.map(({ sentence }) => `  ${sentence}`).join('\n');
