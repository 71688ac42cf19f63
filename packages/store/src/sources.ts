import type { Knex } from 'knex';
import { newId } from '@gateway/core';
import { deleteLive, findLive, insertLive, jsonColumns, listLive, updateLive, type LiveTable } from './live-rows.js';
import type { Page, PageRequest } from './page.js';
import type { SourceRecord } from './snapshot.js';

/** A source as the management API shows it; secret fields of its connection are sealed. */
export interface SourceRow extends SourceRecord {
  readonly type: 'pub_sub';
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** What a user decides of a source. */
export type SourceFields = Pick<SourceRow, 'name' | 'type' | 'pub_sub' | 'body_function' | 'is_disabled'>;

const TABLE: LiveTable = {
  name: 'sources',
  columns: ['project_id', 'id', 'name', 'type', 'pub_sub', 'body_function', 'is_disabled', 'created_at', 'updated_at'],
};

export function insertSource(knex: Knex, projectId: string, fields: SourceFields): Promise<SourceRow> {
  return insertLive(knex, TABLE, { project_id: projectId, id: newId(), ...jsonColumns(fields, ['pub_sub']) });
}

export function listSources(knex: Knex, projectId: string, page: PageRequest): Promise<Page<SourceRow>> {
  return listLive(knex, TABLE, { project_id: projectId }, page);
}

export function findSource(knex: Knex, projectId: string, id: string): Promise<SourceRow | undefined> {
  return findLive(knex, TABLE, { project_id: projectId, id });
}

/** Changes what is given; undefined when there is no such source. */
export function updateSource(knex: Knex, projectId: string, id: string, fields: Partial<SourceFields>): Promise<SourceRow | undefined> {
  return updateLive(knex, TABLE, { project_id: projectId, id }, jsonColumns(fields, ['pub_sub']));
}

/** Marks a source as deleted: agents stop reading it. False when there is no such source. */
export async function deleteSource(knex: Knex, projectId: string, id: string): Promise<boolean> {
  return (await deleteLive(knex, TABLE, { project_id: projectId, id })) === 1;
}
