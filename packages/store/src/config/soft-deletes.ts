import type { Knex } from 'knex';
import { readPage, type Page, type PageRequest } from '../pagination/page.js';

/** A table whose rows are marked as deleted instead of removed, so that the log of events can still name them. */
export interface LiveTable {
  readonly name: string;
  /** What is read back. */
  readonly columns: readonly string[];
}

type Where = Readonly<Record<string, unknown>>;

/** A page of the rows that are not deleted, by id. */
export function listLive<Row extends { readonly id: string }>(
  knex: Knex,
  table: LiveTable,
  where: Where | Knex.QueryCallback,
  page: PageRequest,
): Promise<Page<Row>> {
  return readPage(page, async ({ order, after, limit }) => {
    const query = knex(table.name).where(where).whereNull('deleted_at').orderBy('id', order).limit(limit);
    if (after !== undefined) void query.where('id', order === 'asc' ? '>' : '<', after);
    return { rows: (await query.select(...table.columns)) as Row[] };
  });
}

/** The row, unless it is deleted or never was. */
export async function findLive<Row>(knex: Knex, table: LiveTable, where: Where): Promise<Row | undefined> {
  return (await knex(table.name)
    .where(where)
    .whereNull('deleted_at')
    .first(...table.columns)) as Row | undefined;
}

export async function insertLive<Row>(knex: Knex, table: LiveTable, columns: Where): Promise<Row> {
  const rows = (await knex(table.name)
    .insert(columns)
    .returning([...table.columns])) as Row[];
  return rows[0]!;
}

/** Changes the named columns and the time of the last change; undefined when there is no such row. */
export async function updateLive<Row>(knex: Knex, table: LiveTable, where: Where, columns: Where): Promise<Row | undefined> {
  const rows = (await knex(table.name)
    .where(where)
    .whereNull('deleted_at')
    .update({ ...columns, updated_at: knex.fn.now() })
    .returning([...table.columns])) as Row[];
  return rows[0];
}

/** Marks as deleted; the number of rows that were not before. */
export function deleteLive(knex: Knex, table: LiveTable, where: Where): Promise<number> {
  return knex(table.name).where(where).whereNull('deleted_at').update({ deleted_at: knex.fn.now(), updated_at: knex.fn.now() });
}

/** The named columns as JSON text: the driver would send a JavaScript array as a Postgres array. Null stays null. */
export function jsonColumns<Fields extends object>(fields: Fields, names: readonly (keyof Fields)[]): Where {
  const columns = { ...fields } as Record<string, unknown>;
  for (const name of names) {
    const value = fields[name];
    if (value !== undefined && value !== null) columns[name as string] = JSON.stringify(value);
  }
  return columns;
}
