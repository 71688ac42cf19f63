import type { Knex } from 'knex';
import { newId } from '@gateway/core/events';
import { revokeProjectKeys } from './api-keys.js';
import { deleteLive, findLive, insertLive, jsonColumns, listLive, updateLive, type LiveTable } from './soft-deletes.js';
import type { Page, PageRequest } from '../pagination/page.js';
import type { ProjectRecord } from './snapshot.js';

/** A project as the management API shows it. */
export interface ProjectRow extends ProjectRecord {
  readonly organisation_id: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** What a user decides of a project; its type stays what it was made with. */
export type ProjectFields = Pick<ProjectRow, 'name' | 'config'>;

const TABLE: LiveTable = { name: 'projects', columns: ['id', 'organisation_id', 'name', 'type', 'config', 'created_at', 'updated_at'] };

export function insertProject(knex: Knex, organisationId: string, fields: ProjectFields & Pick<ProjectRow, 'type'>): Promise<ProjectRow> {
  return insertLive(knex, TABLE, { id: newId(), organisation_id: organisationId, ...jsonColumns(fields, ['config']) });
}

/** Projects of these organisations. */
export function listProjects(knex: Knex, organisationIds: readonly string[], page: PageRequest): Promise<Page<ProjectRow>> {
  return listLive(knex, TABLE, (query) => void query.whereIn('organisation_id', [...organisationIds]), page);
}

export function findProject(knex: Knex, id: string): Promise<ProjectRow | undefined> {
  return findLive(knex, TABLE, { id });
}

/** Changes what is given; undefined when there is no such project. */
export function updateProject(knex: Knex, id: string, fields: Partial<ProjectFields>): Promise<ProjectRow | undefined> {
  return updateLive(knex, TABLE, { id }, jsonColumns(fields, ['config']));
}

/** Marks a project as deleted and revokes its keys; its events stay until their partitions are dropped. False when there is no such project. */
export function deleteProject(knex: Knex, id: string): Promise<boolean> {
  return knex.transaction(async (trx) => {
    await revokeProjectKeys(trx, id);
    return (await deleteLive(trx, TABLE, { id })) === 1;
  });
}
