import type { Pool, PoolClient } from 'pg';
import type { Querier } from './connection.js';
import type { Database } from './database.js';

/** All other tables belong to the control plane. */
export const DATA_TABLES: readonly string[] = [
  'activity',
  'agents',
  'archive_failure',
  'backlog_samples',
  'count_changes',
  'delivery_attempt_counts',
  'delivery_attempts',
  'event_counts',
  'event_deliveries',
  'event_delivery_counts',
  'event_messages',
  'events',
  'idempotency_keys',
  'message_arrivals',
  'metric_samples',
  'moved_projects',
  'ordered_deliveries',
  'ordered_keys',
  'project_fences',
  'quarantined_messages',
];

/**
 * `control` has a project's configuration, `data` its events, deliveries and counts. No statement
 * names tables of both, so that they can be on different servers.
 */
export interface Planes {
  readonly control: Pool;
  readonly data: Pool;
}

export function bothPlanes({ pool }: Pick<Database, 'pool'>): Planes {
  return { control: pool, data: pool };
}

/**
 * To read the control plane while `client` holds locks in the data plane. In one database, it is
 * `client` itself: other connections of its pool may all wait for these locks.
 */
export function controlBeside({ control, data }: Planes, client: PoolClient): Querier {
  return control === data ? client : control;
}
