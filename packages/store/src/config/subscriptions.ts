import type { Knex } from 'knex';
import type { Page, PageRequest } from '../pagination/page.js';
import type { SubscriptionRecord } from './snapshot.js';
import { projectTable } from './soft-deletes.js';

/** A subscription in the management API. */
export interface SubscriptionRow extends SubscriptionRecord {
  readonly name: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** The fields that users set. */
export type SubscriptionFields = Pick<SubscriptionRow, 'name' | 'endpoint_id' | 'event_types' | 'filter'>;

const {
  rows,
  insert,
  find,
  update,
  delete: remove,
} = projectTable<SubscriptionRow, SubscriptionFields>('subscriptions', ['name', 'endpoint_id', 'event_types', 'filter'], ['filter']);
export { insert as insertSubscription, find as findSubscription, update as updateSubscription, remove as deleteSubscription };

export function listSubscriptions(
  knex: Knex,
  projectId: string,
  { endpointId }: { endpointId?: string | undefined },
  page: PageRequest,
): Promise<Page<SubscriptionRow>> {
  return rows.list(knex, { project_id: projectId, ...(endpointId === undefined ? {} : { endpoint_id: endpointId }) }, page);
}

export async function deleteSubscriptionsOf(knex: Knex, projectId: string, endpointId: string): Promise<void> {
  await rows.delete(knex, { project_id: projectId, endpoint_id: endpointId });
}
