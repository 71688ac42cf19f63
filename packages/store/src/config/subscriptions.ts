import type { Knex } from 'knex';
import { newId } from '@gateway/core/events';
import { deleteLive, findLive, insertLive, jsonColumns, listLive, updateLive, type LiveTable } from './soft-deletes.js';
import type { Page, PageRequest } from '../pagination/page.js';
import type { SubscriptionRecord } from './snapshot.js';

/** A subscription as the management API shows it. */
export interface SubscriptionRow extends SubscriptionRecord {
  readonly name: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** What a user decides of a subscription. */
export type SubscriptionFields = Pick<SubscriptionRow, 'name' | 'endpoint_id' | 'event_types' | 'filter'>;

const TABLE: LiveTable = {
  name: 'subscriptions',
  columns: ['project_id', 'id', 'name', 'endpoint_id', 'event_types', 'filter', 'created_at', 'updated_at'],
};

export function insertSubscription(knex: Knex, projectId: string, fields: SubscriptionFields): Promise<SubscriptionRow> {
  return insertLive(knex, TABLE, { project_id: projectId, id: newId(), ...jsonColumns(fields, ['filter']) });
}

export function listSubscriptions(
  knex: Knex,
  projectId: string,
  { endpointId }: { endpointId?: string | undefined },
  page: PageRequest,
): Promise<Page<SubscriptionRow>> {
  return listLive(knex, TABLE, { project_id: projectId, ...(endpointId === undefined ? {} : { endpoint_id: endpointId }) }, page);
}

export function findSubscription(knex: Knex, projectId: string, id: string): Promise<SubscriptionRow | undefined> {
  return findLive(knex, TABLE, { project_id: projectId, id });
}

/** Changes what is given; undefined when there is no such subscription. */
export function updateSubscription(
  knex: Knex,
  projectId: string,
  id: string,
  fields: Partial<SubscriptionFields>,
): Promise<SubscriptionRow | undefined> {
  return updateLive(knex, TABLE, { project_id: projectId, id }, jsonColumns(fields, ['filter']));
}

/** Marks a subscription as deleted. False when there is no such subscription. */
export async function deleteSubscription(knex: Knex, projectId: string, id: string): Promise<boolean> {
  return (await deleteLive(knex, TABLE, { project_id: projectId, id })) === 1;
}

/** Marks the subscriptions of an endpoint as deleted. */
export async function deleteSubscriptionsOf(knex: Knex, projectId: string, endpointId: string): Promise<void> {
  await deleteLive(knex, TABLE, { project_id: projectId, endpoint_id: endpointId });
}
