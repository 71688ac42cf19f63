import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { newId } from '@gateway/core/events';
import { deleteLive, findLive, insertLive, jsonColumns, listLive, updateLive, type LiveTable } from './soft-deletes.js';
import type { Page, PageRequest } from '../pagination/page.js';
import type { EndpointRecord, SecretRecord } from './snapshot.js';
import { deleteSubscriptionsOf } from './subscriptions.js';

/** An endpoint as the management API shows it; its secrets are sealed. */
export interface EndpointRow extends EndpointRecord {
  readonly name: string;
  readonly description: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** What a user decides of an endpoint. */
export type EndpointFields = Pick<
  EndpointRow,
  'name' | 'url' | 'owner_id' | 'description' | 'secrets' | 'authentication' | 'timeout_ms' | 'concurrency' | 'strategy'
> &
  Partial<Pick<EndpointRow, 'rate_limit' | 'rate_limit_duration'>>;

const TABLE: LiveTable = {
  name: 'endpoints',
  columns: [
    ...[
      'project_id',
      'id',
      'name',
      'url',
      'owner_id',
      'description',
      'status',
      'status_reason',
      'secrets',
      'authentication',
      'timeout_ms',
      'concurrency',
    ],
    ...['strategy', 'rate_limit', 'rate_limit_duration', 'created_at', 'updated_at'],
  ],
};
const JSON_COLUMNS = ['secrets', 'authentication', 'strategy'] as const;

export function insertEndpoint(knex: Knex, projectId: string, fields: EndpointFields): Promise<EndpointRow> {
  return insertLive(knex, TABLE, { project_id: projectId, id: newId(), ...jsonColumns(fields, JSON_COLUMNS) });
}

export function listEndpoints(
  knex: Knex,
  projectId: string,
  { ownerId }: { ownerId?: string | undefined },
  page: PageRequest,
): Promise<Page<EndpointRow>> {
  return listLive(knex, TABLE, { project_id: projectId, ...(ownerId === undefined ? {} : { owner_id: ownerId }) }, page);
}

export function findEndpoint(knex: Knex, projectId: string, id: string): Promise<EndpointRow | undefined> {
  return findLive(knex, TABLE, { project_id: projectId, id });
}

/** True when an endpoint of the project has this owner id. */
export async function ownerExists(knex: Knex, projectId: string, ownerId: string): Promise<boolean> {
  return (await findLive(knex, TABLE, { project_id: projectId, owner_id: ownerId })) !== undefined;
}

/** Changes what is given; undefined when there is no such endpoint. */
export function updateEndpoint(
  knex: Knex,
  projectId: string,
  id: string,
  fields: Partial<EndpointFields>,
): Promise<EndpointRow | undefined> {
  return updateLive(knex, TABLE, { project_id: projectId, id }, jsonColumns(fields, JSON_COLUMNS));
}

/** Replaces the secrets by what `change` makes of the present ones. Lock: the endpoint's row, so that two rotations at once lose no secret. */
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
    return locked && updateEndpoint(trx, projectId, id, { secrets: change(locked.secrets) });
  });
}

/** Sets whether an endpoint gets requests, and why not; undefined when there is no such endpoint. */
export function setEndpointStatus(
  knex: Knex,
  projectId: string,
  id: string,
  { status, reason }: { status: EndpointRow['status']; reason: string | null },
): Promise<EndpointRow | undefined> {
  return updateLive(knex, TABLE, { project_id: projectId, id }, { status, status_reason: reason });
}

/** Marks an endpoint and its subscriptions as deleted. False when there is no such endpoint. */
export function deleteEndpoint(knex: Knex, projectId: string, id: string): Promise<boolean> {
  return knex.transaction(async (trx) => {
    await deleteSubscriptionsOf(trx, projectId, id);
    return (await deleteLive(trx, TABLE, { project_id: projectId, id })) === 1;
  });
}

/** An endpoint of a breaker. */
export interface BreakerEndpoint {
  readonly project_id: string;
  readonly id: string;
  readonly name: string;
  readonly project_name: string;
}

/** The endpoints of these ids that are not deleted, whatever project they are in. One probe of a primary key per id and project. No lock. */
export async function readBreakerEndpoints(pool: Pool, ids: readonly string[]): Promise<BreakerEndpoint[]> {
  const { rows } = await pool.query<BreakerEndpoint>({
    name: 'read-breaker-endpoints',
    text: `select e.project_id, e.id, e.name, p.name as project_name from endpoints e join projects p on p.id = e.project_id
           where e.project_id = any (array(select id from projects where deleted_at is null)) and e.id = any ($1::uuid[]) and e.deleted_at is null
           order by p.name, e.name, e.id`,
    values: [ids],
  });
  return rows;
}
