import type { Pool } from 'pg';
import type { Database } from './database.js';

/**
 * The databases of a project: `control` has its configuration, and `data` its events, deliveries
 * and counts. No statement names tables of both, so that they can be on different servers.
 */
export interface Planes {
  readonly control: Pool;
  readonly data: Pool;
}

/** Returns the planes of a database that has both. */
export function bothPlanes({ pool }: Pick<Database, 'pool'>): Planes {
  return { control: pool, data: pool };
}
