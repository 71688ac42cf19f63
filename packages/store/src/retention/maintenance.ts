import type pg from 'pg';
import { deleteEndedSessions } from '../config/api-keys.js';
import { deleteEndedPortalLinks } from '../config/portal-links.js';
import { deleteOldActivity } from '../counts/activity.js';
import { deleteOldCounts } from '../counts/count-deltas.js';
import { deleteOldAuditEntries } from '../people/audit-log.js';
import { deleteOldRequests } from '../people/idempotent-requests.js';
import { withAdvisoryLock, withLockTimeout } from '../postgres/advisory-lock.js';

const LOCK_MS = 2_000;
const BATCH = 1_000;

/**
 * Creates the partitions of the coming days; deletes expired idempotency keys, sessions and portal links, old activity, audit entries and answers, and counts of deleted rows. In any
 * agent, one at a time.
 */
export async function runMaintenance(
  pool: pg.Pool,
  daysAhead = 7,
  auditDays = 365,
): Promise<{ partitionsCreated: boolean; keysDeleted: number }> {
  const done = await withAdvisoryLock(pool, 'gateway.upkeep', async (client) => {
    // A locked table, as during a backup, is no failure: new rows go to the default partition.
    const partitionsCreated = await withLockTimeout(client, LOCK_MS, () => createDays(client, daysAhead));
    return { partitionsCreated: partitionsCreated ?? false, keysDeleted: await deleteExpiredKeys(client) };
  });
  if (!done) return { partitionsCreated: false, keysDeleted: 0 };
  await deleteOldCounts(pool);
  await deleteOldActivity(pool);
  await deleteEndedSessions(pool);
  await deleteEndedPortalLinks(pool);
  await deleteOldAuditEntries(pool, auditDays);
  await deleteOldRequests(pool);
  return done;
}

async function createDays(client: pg.PoolClient, daysAhead: number): Promise<boolean> {
  const { rows } = await client.query<{ created: boolean }>(
    `select bool_or(ensure_day((now() at time zone 'UTC')::date + n)) as created from generate_series(0, $1::int) n`,
    [daysAhead],
  );
  return rows[0]?.created ?? false;
}

async function deleteExpiredKeys(client: pg.PoolClient): Promise<number> {
  for (let total = 0; ;) {
    // A key that a message is reusing is locked and skipped.
    const { rowCount } = await client.query(
      `with old as materialized (select project_id, key from idempotency_keys where expires_at <= now() limit ${BATCH} for update skip locked)
       delete from idempotency_keys k using old where k.project_id = old.project_id and k.key = old.key`,
    );
    total += rowCount ?? 0;
    if (rowCount !== BATCH) return total;
  }
}
