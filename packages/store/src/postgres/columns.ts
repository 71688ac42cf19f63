/**
 * A batch is sent to Postgres as one text per column and split there: half the cost of array literals, which quote and escape every value.
 * U+001E separates values, U+001F stands for null. JSON text escapes both; any other value that contains control characters is rejected (ingest
 * messages) or cleaned (`clean`).
 */
const SEPARATOR = '\x1e';
const NULL = '\x1f';

/** The text of a column. An empty string becomes null, because Postgres splits an empty text into no values. */
export function column(values: readonly (string | number | null)[]): string {
  let text = '';
  for (let k = 0; k < values.length; k++) {
    const value = values[k];
    if (k > 0) text += SEPARATOR;
    text += value === null || value === undefined || value === '' ? NULL : value;
  }
  return text;
}

/** The SQL that splits parameter `$n` into an array of text. */
export function split(n: number): string {
  return `string_to_array($${n}, E'\\x1e', E'\\x1f')`;
}

// eslint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\x1e\x1f]/g;

/** Replaces the characters of external text (a response body, an error) that Postgres or `column` cannot carry. */
export function clean(text: string): string {
  return UNSTORABLE.test(text) ? text.replace(UNSTORABLE, '\ufffd') : text;
}
