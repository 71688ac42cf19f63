import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { PageRequest, PageResult } from '../pagination/page.js';
import type { OwnerShare } from './owners.js';
import {
  column,
  holding,
  projectTable,
  type FieldsOf,
  type RecordOf,
  type RowOf,
} from './soft-deletes.js';

export interface SubscriptionFilter {
  readonly body?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly message?: Readonly<Record<string, unknown>>;
}

/** Agents keep these columns in memory. */
export const subscriptionRecord = {
  endpoint_id: column<string>(),
  event_types: column<readonly string[]>(),
  filter: column<SubscriptionFilter | null>({ isJson: true }),
  /** Replaces that of the endpoint. Null: the endpoint decides. */
  ordering: column<string | null>(),
};
const columns = {
  name: column<string>({ isSearched: true }),
  ...subscriptionRecord,
  is_disabled: column<boolean>(),
  function: column<string | null>(),
};

export interface SubscriptionRecord extends RecordOf<typeof subscriptionRecord> {}
export interface SubscriptionRow extends RowOf<typeof columns> {}
export type SubscriptionFields = FieldsOf<SubscriptionRow, 'name' | 'endpoint_id'>;

export interface ActiveSubscription extends SubscriptionRecord {
  /** When it last changed. Null without a function. */
  readonly function_version: string | null;
}

const { rows, ...table } = projectTable<SubscriptionRow, SubscriptionFields>(
  'subscriptions',
  columns,
);
export const {
  find: findSubscription,
  update: updateSubscription,
  delete: deleteSubscription,
} = table;

export function deleteSubscriptionsOf(
  knex: Knex,
  projectId: string,
  endpointId: string,
): Promise<boolean> {
  return rows.delete(knex, { project_id: projectId, endpoint_id: endpointId });
}

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

/** By default for the whole project. */
export function listSubscriptions(
  knex: Knex,
  projectId: string,
  {
    endpointId,
    ownerId,
  }: { readonly endpointId?: string | undefined; readonly ownerId?: string | undefined },
  page: PageRequest,
  search?: string,
): Promise<PageResult<SubscriptionRow>> {
  const where = (query: Knex.QueryBuilder) => {
    void query
      .where({
        project_id: projectId,
        ...(endpointId !== undefined && { endpoint_id: endpointId }),
      })
      .where(holding(['name'], search));
    if (ownerId !== undefined) ofOwner(knex, projectId, ownerId)(query);
  };
  return rows.list(knex, where, page);
}

/** @throws GatewayError `project_full`, also for `share.max` */
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
  return table.insert(knex, projectId, fields, max, owned);
}

export function toggleSubscription(
  knex: Knex,
  projectId: string,
  id: string,
): Promise<SubscriptionRow | undefined> {
  return rows.update(
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

/** Even if it is disabled or deleted. One primary key probe, no lock. */
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
