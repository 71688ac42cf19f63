import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Page, PageRequest } from '../pagination/page.js';
import type { OwnerShare } from './owners.js';
import type { EndpointRecord, SubscriptionRecord } from './snapshot.js';
import { holding, projectTable } from './soft-deletes.js';

export interface EndpointRow extends EndpointRecord {
  readonly name: string;
  readonly description: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type EndpointFields = Pick<
  EndpointRow,
  | 'name'
  | 'url'
  | 'owner_id'
  | 'description'
  | 'secrets'
  | 'authentication'
  | 'timeout_ms'
  | 'concurrency'
  | 'strategy'
> &
  Partial<Pick<EndpointRow, 'rate_limit' | 'rate_limit_duration' | 'mtls_client_cert'>>;

const { rows, ...table } = projectTable<EndpointRow, EndpointFields>(
  'endpoints',
  'name url owner_id description status status_reason secrets authentication mtls_client_cert timeout_ms concurrency strategy rate_limit rate_limit_duration',
  ['secrets', 'authentication', 'mtls_client_cert', 'strategy'],
  ['name', 'url', 'owner_id'],
);
export const {
  list: listEndpoints,
  find: findEndpoint,
  findAnywhere: findEndpointAnywhere,
  update: updateEndpoint,
} = table;

/**
 * Checks for the endpoint or, if `endpointId` is null, any endpoint of the owner. One index probe.
 * No lock.
 */
export async function hasTarget(
  pool: Pool,
  {
    projectId,
    endpointId,
    ownerId,
  }: {
    readonly projectId: string;
    readonly endpointId: string | null;
    readonly ownerId: string | null;
  },
): Promise<boolean> {
  const [column, value] =
    endpointId === null ? (['owner_id', ownerId] as const) : (['id', endpointId] as const);
  const { rowCount } = await pool.query({
    name: `has-target-${column}`,
    text: `select from endpoints where project_id = $1 and ${column} = $2 and deleted_at is null limit 1`,
    values: [projectId, value],
  });
  return rowCount === 1;
}

/**
 * Creates an endpoint. Throws `project_full` at `max` of the project or `share.max` of the owner.
 */
export function insertEndpoint(
  knex: Knex,
  projectId: string,
  fields: Parameters<typeof table.insert>[2],
  max?: number,
  share?: OwnerShare,
): Promise<EndpointRow> {
  const ofOwner = share && {
    where: { owner_id: share.ownerId },
    things: 'endpoints of this owner',
    max: share.max,
    setting: 'limits.endpoints_per_owner',
  };
  return table.insert(knex, projectId, fields, max, ofOwner);
}

/** Counts the endpoints with a client certificate. Reads all endpoints of the project. No lock. */
export async function countClientCertificates(knex: Knex, projectId: string): Promise<number> {
  const stored = knex('endpoints')
    .where({ project_id: projectId })
    .whereNull('deleted_at')
    .whereNotNull('mtls_client_cert');
  const [found] = await stored.count<{ count: string }[]>();
  return Number(found?.count);
}

/** Sets status and reason, without changing deliveries. */
export function setEndpointStatus(
  knex: Knex,
  projectId: string,
  id: string,
  { status, reason }: { status: EndpointRow['status']; reason: string | null },
): Promise<EndpointRow | undefined> {
  return rows.update(knex, { project_id: projectId, id }, { status, status_reason: reason });
}

/** Marks an endpoint and its subscriptions as deleted. */
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

/**
 * Returns endpoints of any project, unless deleted. One primary key probe per id and project. No
 * lock.
 */
export async function readBreakerEndpoints(
  pool: Pool,
  ids: readonly string[],
): Promise<BreakerEndpoint[]> {
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
  readonly function: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type SubscriptionFields = Pick<
  SubscriptionRow,
  'name' | 'endpoint_id' | 'event_types' | 'filter'
> &
  Partial<Pick<SubscriptionRow, 'is_disabled' | 'function'>>;

const SEARCHED = ['name'];
const { rows: subscriptions, ...subscriptionTable } = projectTable<
  SubscriptionRow,
  SubscriptionFields
>(
  'subscriptions',
  'name endpoint_id event_types filter is_disabled function',
  ['filter'],
  SEARCHED,
);
export const {
  find: findSubscription,
  update: updateSubscription,
  delete: deleteSubscription,
} = subscriptionTable;

function ofOwner(
  knex: Knex,
  projectId: string,
  ownerId: string,
): (query: Knex.QueryBuilder) => void {
  const endpoints = knex('endpoints')
    .where({ project_id: projectId, owner_id: ownerId, deleted_at: null })
    .select('id');
  return (query) => void query.whereIn('endpoint_id', endpoints);
}

/** Returns a page of the subscriptions of an endpoint, an owner or the project. */
export function listSubscriptions(
  knex: Knex,
  projectId: string,
  {
    endpointId,
    ownerId,
  }: { readonly endpointId?: string | undefined; readonly ownerId?: string | undefined },
  page: PageRequest,
  search?: string,
): Promise<Page<SubscriptionRow>> {
  const where = (query: Knex.QueryBuilder) => {
    void query
      .where({
        project_id: projectId,
        ...(endpointId !== undefined && { endpoint_id: endpointId }),
      })
      .where(holding(SEARCHED, search));
    if (ownerId !== undefined) ofOwner(knex, projectId, ownerId)(query);
  };
  return subscriptions.list(knex, where, page);
}

/**
 * Creates a subscription. Throws `project_full` at `max` of the project or `share.max` of the
 * owner.
 */
export function insertSubscription(
  knex: Knex,
  projectId: string,
  fields: SubscriptionFields,
  max?: number,
  share?: OwnerShare,
): Promise<SubscriptionRow> {
  const owned = share && {
    where: ofOwner(knex, projectId, share.ownerId),
    things: 'subscriptions of this owner',
    max: share.max,
    setting: 'limits.subscriptions_per_owner',
  };
  return subscriptionTable.insert(knex, projectId, fields, max, owned);
}

/** Disables an enabled subscription, and vice versa. */
export function toggleSubscription(
  knex: Knex,
  projectId: string,
  id: string,
): Promise<SubscriptionRow | undefined> {
  return subscriptions.update(
    knex,
    { project_id: projectId, id },
    { is_disabled: knex.raw('not is_disabled') },
  );
}

export interface SubscriptionFunction {
  readonly name: string;
  /** JavaScript. */
  readonly text: string;
}

/**
 * Returns the function, even of a disabled or deleted subscription. One primary key probe. No lock.
 */
export async function readFunction(
  pool: Pool,
  projectId: string,
  id: string,
): Promise<SubscriptionFunction | null> {
  const { rows: found } = await pool.query<SubscriptionFunction>({
    name: 'read-function',
    text: `select name, function as text from subscriptions where project_id = $1 and id = $2 and function is not null`,
    values: [projectId, id],
  });
  return found[0] ?? null;
}
