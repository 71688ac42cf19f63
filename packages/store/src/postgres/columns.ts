/**
 * A batch is sent as one string per column, which Postgres splits. This costs half as much as array
 * literals, which quote and escape every value. U+001E separates values, and U+001F represents
 * null. JSON escapes both. Other text with control characters is rejected (ingest messages) or
 * cleaned (`EXTERNAL`).
 */
const SEPARATOR = '\x1e';
const NULL = '\x1f';

/** External text is cleaned. */
const EXTERNAL: ReadonlySet<unknown> = new Set([
  'coordinates',
  'detail',
  'error',
  'reason',
  'responseBody',
  'target',
]);

/** Empty strings become null, because Postgres splits an empty string into no values. */
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
 * The SQL relation `u` of a batch whose strings start at parameter `first`. Its columns have the
 * names of the members, ignoring case, and the type text or that in `enums`. A sharded Postgres
 * rejects an update that casts a column to an enum, but not one that casts a parameter.
 */
export function batchRows<Member extends string>(
  members: readonly Member[],
  first = 1,
  enums: Partial<Record<NoInfer<Member>, string>> = {},
): string {
  const arrays = members.map((member, k) => {
    const array = `string_to_array($${first + k}, E'\\x1e', E'\\x1f')`;
    return enums[member] ? `${array}::${enums[member]}[]` : array;
  });
  return `unnest(${arrays.join(', ')}) as u(${members.join(', ')})`;
}

/**
 * From epoch milliseconds. Immutable, unlike `timestamptz 'epoch' + interval`, so that a sharded
 * Postgres accepts it in an update, and exact, unlike `to_timestamp`.
 */
export function timeAt(ms: string): string {
  return `(timestamp 'epoch' + ${ms} * interval '1 millisecond') at time zone 'UTC'`;
}

// eslint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\x1e\x1f]/;

/**
 * Postgres or a batch cannot contain some characters of external text, such as a response body or
 * error.
 */
export function clean(text: string): string {
  if (!UNSTORABLE.test(text)) return text;
  // A response may consist entirely of such characters. For 50 KB of zeros, `replace` takes 6 ms,
  // and this loop a quarter of a millisecond.
  const units = new Uint16Array(text.length);
  const bytes = Buffer.from(units.buffer);
  bytes.write(text, 'utf16le');
  for (let k = 0; k < units.length; k++)
    if (units[k] === 0 || units[k] === 0x1e || units[k] === 0x1f) units[k] = 0xfffd;
  return bytes.toString('utf16le');
}
