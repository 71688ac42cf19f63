import type pg from 'pg';
import { deleteOldCounts } from '../counts/apply-deltas.js';
import { withAdvisoryLock, withLockTimeout } from '../postgres/advisory-lock.js';

const LOCK_MS = 2_000;
const BATCH = 1_000;

/**
 * Makes the partitions of the coming days, and forgets idempotency keys whose window has passed and the counts of what was deleted. Any number of agents
 * may call it: one at a time does the work. A partition that cannot have its lock within two seconds is made at the next call.
 *
 * @param daysAhead how many days beyond today have their partitions
 */
export async function runMaintenance(pool: pg.Pool, daysAhead = 7): Promise<{ partitionsCreated: boolean; keysDeleted: number }> {
  const done = await withAdvisoryLock(pool, 'gateway.upkeep', async (client) => {
    // A table that is locked, as by a backup, is no failure: its rows go to the default partition meanwhile.
    const partitionsCreated = await withLockTimeout(client, LOCK_MS, () => makeDays(client, daysAhead));
    return { partitionsCreated: partitionsCreated ?? false, keysDeleted: await forgetKeys(client) };
  });
  if (!done) return { partitionsCreated: false, keysDeleted: 0 };
  await deleteOldCounts(pool);
  return done;
}

/** Makes the partitions of today and of the days ahead. */
async function makeDays(client: pg.PoolClient, daysAhead: number): Promise<boolean> {
  const { rows } = await client.query<{ made: boolean }>(
    `select bool_or(ensure_day((now() at time zone 'UTC')::date + n)) as made from generate_series(0, $1::int) n`,
    [daysAhead],
  );
  return rows[0]?.made ?? false;
}

async function forgetKeys(client: pg.PoolClient): Promise<number> {
  for (let total = 0; ;) {
    // One that a message takes again at this moment is locked, and is passed over.
    const { rowCount } = await client.query(
      `with old as materialized (select project_id, key from idempotency_keys where expires_at <= now() limit ${BATCH} for update skip locked)
       delete from idempotency_keys k using old where k.project_id = old.project_id and k.key = old.key`,
    );
    total += rowCount ?? 0;
    if (rowCount !== BATCH) return total;
  }
}
