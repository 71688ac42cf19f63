import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Page, PageRequest } from '../pagination/page.js';
import type { EndpointRecord, SecretRecord } from './snapshot.js';
import { projectTable } from './soft-deletes.js';
import { deleteSubscriptionsOf } from './subscriptions.js';

/** An endpoint in the management API; its secrets are sealed. */
export interface EndpointRow extends EndpointRecord {
  readonly name: string;
  readonly description: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** The fields that users set. */
export type EndpointFields = Pick<
  EndpointRow,
  'name' | 'url' | 'owner_id' | 'description' | 'secrets' | 'authentication' | 'timeout_ms' | 'concurrency' | 'strategy'
> &
  Partial<Pick<EndpointRow, 'rate_limit' | 'rate_limit_duration'>>;

const COLUMNS =
  'name url owner_id description status status_reason secrets authentication timeout_ms concurrency strategy rate_limit rate_limit_duration';
const { rows, insert, find, update } = projectTable<EndpointRow, EndpointFields>('endpoints', COLUMNS.split(' '), [
  'secrets',
  'authentication',
  'strategy',
]);
export { insert as insertEndpoint, find as findEndpoint, update as updateEndpoint };

export function listEndpoints(
  knex: Knex,
  projectId: string,
  { ownerId }: { ownerId?: string | undefined },
  page: PageRequest,
): Promise<Page<EndpointRow>> {
  return rows.list(knex, { project_id: projectId, ...(ownerId === undefined ? {} : { owner_id: ownerId }) }, page);
}

/** True when an endpoint of the project has this owner id. */
export async function ownerExists(knex: Knex, projectId: string, ownerId: string): Promise<boolean> {
  return (await rows.find(knex, { project_id: projectId, owner_id: ownerId })) !== undefined;
}

/** Replaces the secrets with the result of `change`. Locks the endpoint's row, so that concurrent rotations lose no secret. */
export function changeSecrets(
  knex: Knex,
  projectId: string,
  id: string,
  change: (secrets: readonly SecretRecord[]) => readonly SecretRecord[],
): Promise<EndpointRow | undefined> {
  return knex.transaction(async (trx) => {
    const locked = await trx('endpoints')
      .where({ project_id: projectId, id })
      .whereNull('deleted_at')
      .forUpdate()
      .first<Pick<EndpointRow, 'secrets'> | undefined>('secrets');
    return locked && update(trx, projectId, id, { secrets: change(locked.secrets) });
  });
}

/** Sets the status and its reason; undefined when there is no such endpoint. */
export function setEndpointStatus(
  knex: Knex,
  projectId: string,
  id: string,
  { status, reason }: { status: EndpointRow['status']; reason: string | null },
): Promise<EndpointRow | undefined> {
  return rows.update(knex, { project_id: projectId, id }, { status, status_reason: reason });
}

/** Marks an endpoint and its subscriptions as deleted; false when there is no such endpoint. */
export function deleteEndpoint(knex: Knex, projectId: string, id: string): Promise<boolean> {
  return knex.transaction(async (trx) => {
    await deleteSubscriptionsOf(trx, projectId, id);
    return rows.delete(trx, { project_id: projectId, id });
  });
}

/** An endpoint with a circuit breaker. */
export interface BreakerEndpoint {
  readonly project_id: string;
  readonly id: string;
  readonly name: string;
  readonly project_name: string;
}

/** The endpoints of these ids in any project, unless deleted. One primary key probe per id and project. No lock. */
export async function readBreakerEndpoints(pool: Pool, ids: readonly string[]): Promise<BreakerEndpoint[]> {
  const { rows: found } = await pool.query<BreakerEndpoint>({
    name: 'read-breaker-endpoints',
    text: `select e.project_id, e.id, e.name, p.name as project_name from endpoints e join projects p on p.id = e.project_id
           where e.project_id = any (array(select id from projects where deleted_at is null)) and e.id = any ($1::uuid[]) and e.deleted_at is null
           order by p.name, e.name, e.id`,
    values: [ids],
  });
  return found;
}
