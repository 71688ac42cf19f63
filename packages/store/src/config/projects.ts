import type { Knex } from 'knex';
import type { Page, PageRequest } from '../pagination/page.js';
import { revokeProjectKeys } from './api-keys.js';
import type { ProjectRecord } from './snapshot.js';
import { softDeleteTable } from './soft-deletes.js';

export interface ProjectRow extends ProjectRecord {
  readonly organisation_id: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type ProjectFields = Pick<ProjectRow, 'name' | 'config'>;

const rows = softDeleteTable<ProjectRow>(
  'projects',
  ['id', 'organisation_id', 'name', 'type', 'config', 'created_at', 'updated_at'],
  ['config'],
);

/** Creates a project, without an API key. */
export function insertProject(
  knex: Knex,
  organisationId: string,
  fields: ProjectFields & Pick<ProjectRow, 'type'>,
): Promise<ProjectRow> {
  return rows.insert(knex, { organisation_id: organisationId, ...fields });
}

/** Returns a page by creation time, without deleted projects. */
export function listProjects(
  knex: Knex,
  organisationIds: readonly string[],
  page: PageRequest,
): Promise<Page<ProjectRow>> {
  return rows.list(
    knex,
    (query) => void query.whereIn('organisation_id', [...organisationIds]),
    page,
  );
}

/** Returns the project, unless deleted. Does not check permissions. */
export function findProject(knex: Knex, id: string): Promise<ProjectRow | undefined> {
  return rows.find(knex, { id });
}

/** Changes the given fields; `config` is replaced as a whole. */
export function updateProject(
  knex: Knex,
  id: string,
  fields: Partial<ProjectFields>,
): Promise<ProjectRow | undefined> {
  return rows.update(knex, { id }, fields);
}

/** Marks a project as deleted and revokes its keys; its events remain until retention. */
export function deleteProject(knex: Knex, id: string): Promise<boolean> {
  return knex.transaction(async (trx) => {
    await revokeProjectKeys(trx, id);
    return rows.delete(trx, { id });
  });
}
