import type { Knex } from 'knex';
import { newId } from '@gateway/core/events';
import { idBound } from '../pagination/log-page.js';
import { readRows, type PageRequest, type PageResult } from '../pagination/page.js';
import { deleteInBatches } from '../postgres/advisory-lock.js';
import type { Querier } from '../postgres/connection.js';

export interface AuditEntry {
  readonly organisation_id: string;
  readonly project_id: string | null;
  readonly actor_type: 'user' | 'project' | 'portal' | 'process';
  readonly actor_id: string;
  readonly key_id: string | null;
  /** Such as `endpoints.update`. */
  readonly action: string;
  readonly resource_id: string | null;
  /** JSON of the old and new value of each changed field. */
  readonly changes: string;
  readonly address: string | null;
  readonly request_id: string;
}

export type AuditRow = Omit<AuditEntry, 'changes'> & {
  readonly id: string;
  /**
   * The user's email address or the key's name. Null for a credential of the process, or if the
   * user or key was deleted.
   */
  readonly actor_name: string | null;
  readonly changes: unknown;
};

export interface AuditFilter {
  readonly projectId?: string | undefined;
  readonly actorId?: string | undefined;
  readonly resourceId?: string | undefined;
  /** Or all actions on a kind of resource, such as `endpoints.*`. */
  readonly action?: string | undefined;
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
}

export async function insertAuditEntries(
  knex: Knex,
  entries: readonly AuditEntry[],
): Promise<void> {
  await knex('audit_log').insert(entries.map((entry) => ({ id: newId(), ...entry })));
}

/** By id, which starts with the time. */
export function listAuditLog(
  knex: Knex,
  organisationId: string,
  { projectId, actorId, resourceId, action, from, to }: AuditFilter,
  page: PageRequest,
): Promise<PageResult<AuditRow>> {
  const query = knex('audit_log as a').where('a.organisation_id', organisationId);
  if (projectId !== undefined) void query.where('a.project_id', projectId);
  if (actorId !== undefined) void query.where('a.actor_id', actorId);
  if (resourceId !== undefined) void query.where('a.resource_id', resourceId);
  if (action?.endsWith('.*'))
    void query.whereRaw('starts_with(a.action, ?)', [action.slice(0, -1)]);
  else if (action !== undefined) void query.where('a.action', action);
  if (from) void query.where('a.id', '>=', idBound(from.getTime(), '0'));
  if (to) void query.where('a.id', '<=', idBound(to.getTime(), 'f'));
  const name =
    knex.raw(`case a.actor_type when 'user' then (select email from users u where u.id::text = a.actor_id)
                                  else (select name from api_keys k where k.id = a.key_id) end as actor_name`);
  return readRows(query, ['a.*', name], page, 'a.id');
}

export async function deleteOldAuditEntries(pool: Querier, days: number): Promise<void> {
  const before = idBound(Math.max(0, Date.now() - days * 86_400_000), '0');
  await deleteInBatches(
    pool,
    'delete from audit_log where (organisation_id, id) in (select organisation_id, id from audit_log where id < $2 limit $1)',
    [before],
  );
}
