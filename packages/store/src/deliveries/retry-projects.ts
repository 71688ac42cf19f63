import type { Pool } from 'pg';
import { GatewayError } from '@gateway/core/errors';
import { timeOfId } from '@gateway/core/events';

/** A project whose deliveries are re-queued. */
export interface RetryProject {
  readonly id: string;
  readonly name: string;
}

/**
 * The projects that hold what these ids name, or all that are not deleted. No lock; one probe per project at most.
 *
 * @throws GatewayError `not_found` for an id that is not there: nothing found would look like nothing to do
 */
export async function findRetryProjects(
  pool: Pool,
  { projectId, eventId, endpointId }: { projectId?: string | undefined; eventId?: string | undefined; endpointId?: string | undefined },
): Promise<RetryProject[]> {
  const { rows } = await pool.query<RetryProject>(
    `select id, name from projects where deleted_at is null and ($1::uuid is null or id = $1) order by id`,
    [projectId ?? null],
  );
  if (projectId !== undefined && rows.length === 0) throw new GatewayError('not_found', { thing: 'project', id: projectId });
  let projects = rows;
  const keep = (thing: string, id: string, found: readonly { readonly id: string }[]) => {
    projects = projects.filter((project) => found.some((it) => it.id === project.id));
    if (projects.length === 0) throw new GatewayError('not_found', { thing, id });
  };
  if (endpointId !== undefined) keep('endpoint', endpointId, await projectsOfEndpoint(pool, endpointId));
  if (eventId !== undefined) keep('event', eventId, await projectsOfEvent(pool, eventId));
  return projects;
}

async function projectsOfEndpoint(pool: Pool, endpointId: string): Promise<{ id: string }[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select p.id from projects p join endpoints n on n.project_id = p.id and n.id = $1 and n.deleted_at is null`,
    [endpointId],
  );
  return rows;
}

async function projectsOfEvent(pool: Pool, eventId: string): Promise<{ id: string }[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select p.id from projects p join events e on e.project_id = p.id and e.id = $1 and e.occurred_at = $2`,
    [eventId, new Date(timeOfId(eventId))],
  );
  return rows;
}
