/**
 * A batch is sent as one text per column and split by Postgres: half the cost of array literals,
 * which quote and escape every value. U+001E separates values, U+001F stands for null. JSON text
 * escapes both; other text with control characters is rejected (ingest messages) or cleaned
 * (`EXTERNAL`).
 */
const SEPARATOR = '\x1e';
const NULL = '\x1f';

/** Members with external text. */
const EXTERNAL: ReadonlySet<unknown> = new Set([
  'coordinates',
  'error',
  'reason',
  'responseBody',
  'url',
]);

/**
 * Returns one text per member. An empty string becomes null: Postgres splits an empty text into no
 * values.
 */
export function batchTexts<Row>(rows: readonly Row[], members: readonly (keyof Row)[]): string[] {
  return members.map((member) => {
    const isExternal = EXTERNAL.has(member);
    let text = '';
    for (let k = 0; k < rows.length; k++) {
      const value = rows[k]![member] as string | number | null | undefined;
      if (k > 0) text += SEPARATOR;
      if (value === null || value === undefined || value === '') text += NULL;
      else text += isExternal ? clean(value as string) : value;
    }
    return text;
  });
}

/**
 * Returns the SQL of a batch's rows `u` from parameter `first`. Columns are text, named like the
 * members, ignoring case.
 */
export function batchRows(members: readonly string[], first = 1): string {
  return `unnest(${members.map((_, k) => `string_to_array($${first + k}, E'\\x1e', E'\\x1f')`).join(', ')}) as u(${members.join(', ')})`;
}

// eslint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\x1e\x1f]/;

/**
 * Replaces characters of external text (a response body, an error) that Postgres or a batch cannot
 * carry.
 */
export function clean(text: string): string {
  if (!UNSTORABLE.test(text)) return text;
  // A response can consist of such characters: `replace` takes 6 ms for 50 KB of zeros, this a
  // quarter of a millisecond.
  const units = new Uint16Array(text.length);
  const bytes = Buffer.from(units.buffer);
  bytes.write(text, 'utf16le');
  for (let k = 0; k < units.length; k++)
    if (units[k] === 0 || units[k] === 0x1e || units[k] === 0x1f) units[k] = 0xfffd;
  return bytes.toString('utf16le');
}
