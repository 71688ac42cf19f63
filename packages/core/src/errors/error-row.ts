export interface SettingProblem {
  readonly key: string;
  /** A flag (`--port`), an environment variable (`AGENT_PORT`) or the file (`./gateway.json`). */
  readonly origin: string;
  readonly sentence: string;
}

/** `field` is its path in the body. */
export interface InvalidField {
  readonly field: string;
  readonly sentence: string;
}

/** Determines how an error is reported. */
export interface ErrorRow<Details> {
  /** 1 for a failure, 2 for a usage error. */
  readonly exit: 1 | 2;
  readonly http: number;
  /** The failure, its place and, if known, its cause. */
  readonly message: (details: Details) => string;
  readonly fix: (details: Details) => string;
}

export type None = Record<never, never>;

/** A string may have `{detail}` placeholders. */
type Sentence = string | ((details: never) => string);
type Named<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [Key in Name]: string | number } & Named<Rest>
  : None;
type DetailsOf<It> = It extends string
  ? Named<It>
  : It extends (details: infer Details) => string
    ? Details
    : never;

/** `{name}` in a string is replaced with the detail of that name. */
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

/** Message and fix are passed as details. */
export const composed = (http = 500, exit: 1 | 2 = 1) => row(http, '{sentence}', '{fix}', exit);

export const listed = (lines: readonly { readonly sentence: string }[]) =>
  lines.map(({ sentence }) => `  ${sentence}`).join('\n');

/** Details of `conflict`: states that do not allow a request. */
export const CONFLICTS = [
  'endpoint_deleted',
  'endpoint_inactive',
  'endpoint_paused',
  'delivery_in_progress',
] as const;
export type ConflictCode = (typeof CONFLICTS)[number];
