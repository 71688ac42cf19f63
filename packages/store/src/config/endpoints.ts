import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { EndpointRecord, SubscriptionRecord } from './snapshot.js';
import { projectTable } from './soft-deletes.js';

export interface EndpointRow extends EndpointRecord {
  readonly name: string;
  readonly description: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type EndpointFields = Pick<
  EndpointRow,
  'name' | 'url' | 'owner_id' | 'description' | 'secrets' | 'authentication' | 'timeout_ms' | 'concurrency' | 'strategy'
> &
  Partial<Pick<EndpointRow, 'rate_limit' | 'rate_limit_duration'>>;

const { rows, ...table } = projectTable<EndpointRow, EndpointFields>(
  'endpoints',
  'name url owner_id description status status_reason secrets authentication timeout_ms concurrency strategy rate_limit rate_limit_duration',
  ['secrets', 'authentication', 'strategy'],
  ['name', 'url', 'owner_id'],
);
export const {
  list: listEndpoints,
  insert: insertEndpoint,
  find: findEndpoint,
  findAnywhere: findEndpointAnywhere,
  update: updateEndpoint,
} = table;

/** True when at least one endpoint of the project that is not deleted has this owner id. */
export async function ownerExists(knex: Knex, projectId: string, ownerId: string): Promise<boolean> {
  return (await rows.find(knex, { project_id: projectId, owner_id: ownerId })) !== undefined;
}

/** Sets status and reason, null for none; deliveries stay as they are. Returns undefined when the endpoint is missing or deleted. */
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
    await subscriptions.delete(trx, { project_id: projectId, endpoint_id: id });
    return rows.delete(trx, { project_id: projectId, id });
  });
}

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

export interface SubscriptionRow extends SubscriptionRecord {
  readonly name: string;
  readonly is_disabled: boolean;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type SubscriptionFields = Pick<SubscriptionRow, 'name' | 'endpoint_id' | 'event_types' | 'filter'> &
  Partial<Pick<SubscriptionRow, 'is_disabled'>>;

const { rows: subscriptions, ...subscriptionTable } = projectTable<SubscriptionRow, SubscriptionFields>(
  'subscriptions',
  'name endpoint_id event_types filter is_disabled',
  ['filter'],
  ['name'],
);
export const {
  list: listSubscriptions,
  insert: insertSubscription,
  find: findSubscription,
  update: updateSubscription,
  delete: deleteSubscription,
} = subscriptionTable;

/** Disables an enabled subscription, and enables a disabled one; undefined when there is no such subscription. */
export function toggleSubscription(knex: Knex, projectId: string, id: string): Promise<SubscriptionRow | undefined> {
  return subscriptions.update(knex, { project_id: projectId, id }, { is_disabled: knex.raw('not is_disabled') });
}
