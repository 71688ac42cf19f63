/**
 * A batch is sent as one string per column, which Postgres splits: half the cost of array literals,
 * which quote and escape every value. U+001E separates values, and U+001F is null. JSON escapes
 * both. Other text with control characters is rejected (messages) or cleaned (`EXTERNAL`).
 */
const SEPARATOR = '\x1e';
const NULL = '\x1f';

const EXTERNAL: ReadonlySet<unknown> = new Set([
  'coordinates',
  'detail',
  'error',
  'orderText',
  'reason',
  'responseBody',
  'target',
]);

/**
 * A column of a batch, the member of the rows that it gets, and SQL that makes its value of a text:
 * a type, or an expression. A sharded Postgres rejects an update that casts a column to an enum, but
 * not one that casts a parameter, so enums have the type of an array, as in `event_status[]`.
 */
export type BatchColumn<Row> = readonly [
  column: string,
  member: keyof Row & string,
  sql?: string | ((text: string) => string),
];

export interface RowBatch<Row> {
  /** The columns, separated by commas. */
  readonly names: string;
  /** The number of parameters. */
  readonly size: number;
  texts(rows: readonly Row[]): string[];
  /** A query for the rows, whose parameters begin at `first`. */
  select(first?: number): string;
}

export function batchOf<Row>(columns: readonly BatchColumn<Row>[]): RowBatch<Row> {
  const members = columns.map(([, member]) => member);
  const isArray = (sql: BatchColumn<Row>[2]) => typeof sql === 'string' && sql.endsWith('[]');
  const values = columns.map(([column, member, sql]) => {
    if (typeof sql === 'function') return `${sql(member)} as ${column}`;
    return `${member}${sql === undefined || isArray(sql) ? '' : `::${sql}`} as ${column}`;
  });
  return {
    names: columns.map(([column]) => column).join(', '),
    size: columns.length,
    texts: (rows) => members.map((member) => textOf(rows, member)),
    select(first = 1) {
      const arrays = columns.map(
        ([, , sql], k) =>
          `string_to_array($${first + k}, E'\\x1e', E'\\x1f')${isArray(sql) ? `::${sql as string}` : ''}`,
      );
      return `select ${values.join(', ')} from unnest(${arrays.join(', ')}) as u(${members.join(', ')})`;
    },
  };
}

/** Empty strings become null: Postgres splits an empty string into no values. Objects become JSON. */
function textOf<Row>(rows: readonly Row[], member: keyof Row): string {
  const isExternal = EXTERNAL.has(member);
  const texts = rows.map((row) => {
    const value = row[member] as string | number | object | null | undefined;
    if (value === null || value === undefined || value === '') return NULL;
    if (typeof value === 'object') return JSON.stringify(value);
    return isExternal ? clean(value as string) : value;
  });
  return texts.join(SEPARATOR);
}

/**
 * Hides a condition from the planner. `x in (select …)` is then a hashed subplan: as a join, planned
 * on empty tables, it would compare each row with all. And a status matches no partial index, so a
 * row is found by its key alone: on a new day, without statistics, the planner would read all that
 * is pending or due for each row. Citus refuses the other way, a cast of the status to text, in an
 * update.
 */
export const opaque = (condition: string): string =>
  `case when ${condition} then true else false end`;
/** Also true if the condition is null. */
export const opaqueUnless = (condition: string): string =>
  `case when ${condition} then false else true end`;

/**
 * From epoch milliseconds. Immutable, unlike `timestamptz 'epoch' + interval`, so that a sharded
 * Postgres accepts it in an update, and exact, unlike `to_timestamp`.
 */
export function timeAt(ms: string): string {
  return `(timestamp 'epoch' + ${ms} * interval '1 millisecond') at time zone 'UTC'`;
}

// eslint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\x1e\x1f]/;

/** Neither Postgres nor a batch can contain some characters of external text. */
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
