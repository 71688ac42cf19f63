import type { AuditEntry } from '@gateway/client';
import { accountApi } from '../api/client.js';
import { projectId } from '../router/project-path.js';
import { may } from './access.js';
import { projects } from './projects.js';

/**
 * The newest change of a resource since a time; undefined unless the user can read the audit log.
 */
export async function lastChange(
  resourceId: string,
  since: string,
): Promise<AuditEntry | undefined> {
  const project = projects.value?.find(({ uid }) => uid === projectId.value);
  if (!project || !may('admin')) return undefined;
  const log = accountApi().auditLog.list(project.organisation_id, {
    projectId: project.uid,
    resourceId,
    startDate: since,
    perPage: 1,
  });
  return (await log.page()).content[0];
}
