/**
 * A batch is sent to Postgres as one text per column and split there: half the cost of array literals, which quote and escape every value. U+001E separates
 * values, U+001F stands for null. JSON text escapes both; other text with control characters is rejected (ingest messages) or cleaned (`EXTERNAL`).
 */
const SEPARATOR = '\x1e';
const NULL = '\x1f';

/** Members with text from outside. */
const EXTERNAL: ReadonlySet<unknown> = new Set(['coordinates', 'error', 'reason', 'responseBody', 'url']);

/** The parameters of a batch, a text per member. An empty string becomes null, because Postgres splits an empty text into no values. */
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

/** The SQL of the rows `u` of a batch whose texts start at parameter `first`. Its columns, all text, are named like the members, in any case of letters. */
export function batchRows(members: readonly string[], first = 1): string {
  return `unnest(${members.map((_, k) => `string_to_array($${first + k}, E'\\x1e', E'\\x1f')`).join(', ')}) as u(${members.join(', ')})`;
}

// eslint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\x1e\x1f]/;

/** Replaces the characters of external text (a response body, an error) that Postgres or a batch cannot carry. */
export function clean(text: string): string {
  if (!UNSTORABLE.test(text)) return text;
  // An endpoint may answer nothing else: `replace` takes 6 ms for 50 KB of zeros, this a quarter of a millisecond.
  const units = new Uint16Array(text.length);
  const bytes = Buffer.from(units.buffer);
  bytes.write(text, 'utf16le');
  for (let k = 0; k < units.length; k++) if (units[k] === 0 || units[k] === 0x1e || units[k] === 0x1f) units[k] = 0xfffd;
  return bytes.toString('utf16le');
}
