import type { Knex } from 'knex';
import { newId } from '@gateway/core/events';
import { readPage, type Page, type PageRequest } from '../pagination/page.js';

type Values = Readonly<Record<string, unknown>>;

/**
 * Reads and writes a table whose rows are marked as deleted instead of removed, so that logs can still name them. Deleted rows are never found or changed.
 *
 * @param columns the columns that are read
 * @param json columns that are written as JSON text: the driver would send a JavaScript array as a Postgres array
 */
export function softDeleteTable<Row extends { readonly id: string }>(table: string, columns: readonly string[], json: readonly string[]) {
  const live = (knex: Knex, where: Values | Knex.QueryCallback) => knex(table).where(where).whereNull('deleted_at');
  const stored = (fields: object): Values =>
    Object.fromEntries(
      Object.entries(fields).map(([name, it]) => [
        name,
        json.includes(name) && it !== undefined && it !== null ? JSON.stringify(it) : (it as unknown),
      ]),
    );
  return {
    /** A page of rows by id. */
    list: (knex: Knex, where: Values | Knex.QueryCallback, page: PageRequest): Promise<Page<Row>> =>
      readPage(page, async ({ order, after, limit }) => {
        const query = live(knex, where).orderBy('id', order).limit(limit);
        if (after !== undefined) void query.where('id', order === 'asc' ? '>' : '<', after);
        return { rows: (await query.select(...columns)) as Row[] };
      }),
    find: async (knex: Knex, where: Values): Promise<Row | undefined> => (await live(knex, where).first(...columns)) as Row | undefined,
    /** Inserts a row with a new id. */
    async insert(knex: Knex, fields: object): Promise<Row> {
      const rows = (await knex(table)
        .insert({ id: newId(), ...stored(fields) })
        .returning([...columns])) as Row[];
      return rows[0]!;
    },
    /** Changes the given columns and `updated_at`; undefined when there is no such row. */
    async update(knex: Knex, where: Values, fields: object): Promise<Row | undefined> {
      const rows = (await live(knex, where)
        .update({ ...stored(fields), updated_at: knex.fn.now() })
        .returning([...columns])) as Row[];
      return rows[0];
    },
    /** Marks rows as deleted; false when there was none. */
    delete: async (knex: Knex, where: Values): Promise<boolean> =>
      (await live(knex, where).update({ deleted_at: knex.fn.now(), updated_at: knex.fn.now() })) > 0,
  };
}

/** The same for rows of a project, by project id and id. */
export function projectTable<Row extends { readonly id: string }, Fields extends object>(
  table: string,
  columns: readonly string[],
  json: readonly string[],
) {
  const rows = softDeleteTable<Row>(table, ['project_id', 'id', ...columns, 'created_at', 'updated_at'], json);
  return {
    rows,
    insert: (knex: Knex, projectId: string, fields: Fields) => rows.insert(knex, { project_id: projectId, ...fields }),
    find: (knex: Knex, projectId: string, id: string) => rows.find(knex, { project_id: projectId, id }),
    update: (knex: Knex, projectId: string, id: string, fields: Partial<Fields>) =>
      rows.update(knex, { project_id: projectId, id }, fields),
    delete: (knex: Knex, projectId: string, id: string) => rows.delete(knex, { project_id: projectId, id }),
  };
}
