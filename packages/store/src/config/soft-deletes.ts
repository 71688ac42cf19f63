import type { Knex } from 'knex';
import { GatewayError } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import { readRows, type PageRequest, type PageResult, type SortKeys } from '../pagination/page.js';

type ColumnValues = Readonly<Record<string, unknown>>;

export interface Column<Type> {
  /** Written as JSON. The driver would send an array as a Postgres array. */
  readonly isJson?: true;
  readonly isSearched?: true;
  /** Never set. */
  readonly type?: Type;
}

export type Columns = Readonly<Record<string, Column<unknown>>>;

export interface Ids {
  readonly project_id: string;
  readonly id: string;
}

export interface Times {
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type RecordOf<Described extends Columns> = Ids & {
  readonly [Name in keyof Described]: Described[Name] extends Column<infer Type> ? Type : never;
};
export type RowOf<Described extends Columns> = RecordOf<Described> & Times;

/** `Needed` columns are required, `Kept` ones excluded, and others optional. */
export type FieldsOf<Row, Needed extends keyof Row, Kept extends keyof Row = never> = Pick<
  Row,
  Needed
> &
  Partial<Omit<Row, keyof Ids | keyof Times | Kept>>;

export function column<Type>(options: Omit<Column<Type>, 'type'> = {}): Column<Type> {
  return options;
}

/**
 * SQL of the number that `list` is given for a row. One JSON object, parsed once and searched by
 * id: a join with arrays would compare every pair.
 */
export function givenNumber(table: string): string {
  return `((select numbers from given) ->> ${table}.id::text)::bigint`;
}

export type NumbersById = Readonly<Record<string, number>>;

export function columnsOf(columns: Columns): string {
  return ['project_id', 'id', ...Object.keys(columns)].join(', ');
}

/** Rows are only marked as deleted, so that logs can still name them. */
export function softDeleteTable<Row extends { readonly id: string }>(
  table: string,
  columns: readonly string[],
  json: readonly string[],
  sortKeys: SortKeys = {},
) {
  const live = (knex: Knex, where: ColumnValues | Knex.QueryCallback) =>
    knex(table).where(where).whereNull('deleted_at');
  const stored = (fields: object): ColumnValues =>
    Object.fromEntries(
      Object.entries(fields as ColumnValues).map(([name, it]) => [
        name,
        json.includes(name) && (it ?? null) !== null ? JSON.stringify(it) : it,
      ]),
    );
  return {
    list: (
      knex: Knex,
      where: ColumnValues | Knex.QueryCallback,
      page: PageRequest,
      numbers?: NumbersById,
    ): Promise<PageResult<Row>> => {
      const sql = page.by === undefined ? undefined : sortKeys[page.by];
      const key = sql === undefined ? undefined : { sql, column: knex.raw(`${sql} as sort_key`) };
      const query = live(knex, where);
      if (numbers)
        void query.with('given', knex.raw('select ?::jsonb as numbers', [JSON.stringify(numbers)]));
      return readRows(query, columns, page, 'id', key);
    },
    find: async (knex: Knex, where: ColumnValues): Promise<Row | undefined> =>
      (await live(knex, where).first(...columns)) as Row | undefined,
    async insert(knex: Knex, fields: object): Promise<Row> {
      const rows = (await knex(table)
        .insert({ id: newId(), ...stored(fields) })
        .returning([...columns])) as Row[];
      return rows[0]!;
    },
    async update(knex: Knex, where: ColumnValues, fields: object): Promise<Row | undefined> {
      const rows = (await live(knex, where)
        .update({ ...stored(fields), updated_at: knex.fn.now() })
        .returning([...columns])) as Row[];
      return rows[0];
    },
    delete: async (knex: Knex, where: ColumnValues): Promise<boolean> =>
      (await live(knex, where).update({ deleted_at: knex.fn.now(), updated_at: knex.fn.now() })) >
      0,
  };
}

export function projectTable<Row extends { readonly id: string }, Fields extends object>(
  table: string,
  columns: Columns,
  sortKeys?: SortKeys,
) {
  const those = (property: 'isJson' | 'isSearched') =>
    Object.keys(columns).filter((name) => columns[name]![property]);
  const rows = softDeleteTable<Row>(
    table,
    ['project_id', 'id', ...Object.keys(columns), 'created_at', 'updated_at'],
    those('isJson'),
    sortKeys,
  );
  const searched = those('isSearched');
  return {
    rows,
    /**
     * @param where undefined values are ignored
     * @param search text that a searched column must contain, ignoring case; may read all of the
     *   project's rows, which are limited in number
     * @param numbers for an order by `givenNumber`; by default 0
     */
    list: (
      knex: Knex,
      project_id: string,
      where: ColumnValues,
      page: PageRequest,
      search?: string,
      among?: Among,
      numbers?: NumbersById,
    ) => {
      const given = Object.fromEntries(
        Object.entries({ project_id, ...where }).filter(([, it]) => it !== undefined),
      );
      return rows.list(
        knex,
        (query) => void query.where(given).where(holding(searched, search)).where(idsOf(among)),
        page,
        numbers,
      );
    },
    /**
     * @param fields may contain the id, to which sealed strings are bound
     * @param share a limit for some of the rows
     * @throws GatewayError `project_full`
     */
    insert: (
      knex: Knex,
      project_id: string,
      fields: Fields & { readonly id?: string },
      max = Infinity,
      share?: Full & { readonly where: ColumnValues | Knex.QueryCallback },
    ): Promise<Row> => {
      if (max === Infinity && !share) return rows.insert(knex, { project_id, ...fields });
      return knex.transaction(async (trx) => {
        const stored = () => trx(table).where({ project_id }).whereNull('deleted_at');
        await requireRoom(trx, project_id, stored(), {
          things: table,
          max,
          setting: `limits.${table}_per_project`,
        });
        if (share) await requireRoom(trx, project_id, stored().where(share.where), share);
        return rows.insert(trx, { project_id, ...fields });
      });
    },
    find: (knex: Knex, project_id: string, id: string) => rows.find(knex, { project_id, id }),
    update: (knex: Knex, project_id: string, id: string, fields: Partial<Fields>) =>
      rows.update(knex, { project_id, id }, fields),
    delete: (knex: Knex, project_id: string, id: string) => rows.delete(knex, { project_id, id }),
  };
}

export type Among = { readonly only: readonly string[] } | { readonly except: readonly string[] };

function idsOf(among: Among | undefined): Knex.QueryCallback {
  return (query) => {
    if (!among) return;
    if ('only' in among) void query.whereRaw('id = any (?::uuid[])', [among.only as string[]]);
    else void query.whereRaw('id <> all (?::uuid[])', [among.except as string[]]);
  };
}

/** Ignores case. */
export function holding(columns: readonly string[], text: string | undefined): Knex.QueryCallback {
  return (query) => {
    if (text === undefined) return;
    for (const column of columns) void query.orWhereRaw('?? ~ ?', [column, inAnyCase(text)]);
  };
}

/**
 * For Postgres. The letters' cases are those of JavaScript: with `ilike`, a Turkish database does
 * not find INFO for info.
 */
function inAnyCase(text: string): string {
  return Array.from(text, (char) => {
    const cases = new Set([char, char.toLowerCase(), char.toUpperCase()]);
    const single = [...cases].filter((it) => it.length === char.length);
    return single.length > 1 ? `[${single.join('')}]` : char.replace(/[!-/:-@[-`{-~]/, '\\$&');
  }).join('');
}

export interface Full {
  readonly things: string;
  readonly max: number;
  readonly setting: string;
}

/**
 * Requires that `stored` selects so few rows that there is room for more. Locks the project's row,
 * so that concurrent inserts see each other's rows; call it first in a transaction.
 * @throws GatewayError `project_full`
 */
export async function requireRoom(
  trx: Knex.Transaction,
  projectId: string,
  stored: Knex.QueryBuilder,
  { things, max, setting }: Full,
  more = 1,
): Promise<void> {
  await trx.raw('select from projects where id = ? for no key update', [projectId]);
  if ((await countOf(stored)) + more > max)
    throw new GatewayError('project_full', { things, max, setting });
}

export async function countOf(query: Knex.QueryBuilder): Promise<number> {
  const [found] = await query.count<{ count: string }[]>();
  return Number(found?.count);
}
