import type pg from 'pg';
import { deleteEndedKeys } from '../config/api-keys.js';
import { deleteOldPositions } from '../config/source-positions.js';
import { KEPT_DAYS } from '../counts/activity.js';
import { deleteOldCounts } from '../counts/count-deltas.js';
import { deleteOldIssues } from '../counts/issues.js';
import { deleteOldAuditEntries } from '../people/audit-log.js';
import { deleteOldRequests } from '../people/idempotent-requests.js';
import { deleteInBatches, withAdvisoryLock, withLockTimeout } from '../postgres/advisory-lock.js';
import { PARENTS } from './retention.js';
import type { Querier } from '../postgres/connection.js';
import type { ShardPlanes } from '../shards/open-shards.js';

const LOCK_MS = 2_000;
/** Messages lock the keys that they reuse. */
const EXPIRED_KEYS = `
  with old as materialized (select project_id, key from idempotency_keys where expires_at <= now() limit $1 for update skip locked)
  delete from idempotency_keys k using old where k.project_id = old.project_id and k.key = old.key`;

/**
 * In one process at a time. Returns upcoming days (`2026-01-31`) that could get no partition, whose
 * rows go to the default one.
 */
export async function runMaintenance(planes: ShardPlanes, daysAhead = 7): Promise<string[]> {
  const { data } = planes;
  const missing = await withAdvisoryLock(data, 'gateway.upkeep', async (client) => {
    await deleteInBatches(client, EXPIRED_KEYS);
    const days = await missingDays(client, daysAhead);
    for (const day of days) {
      // A locked table, as during a backup, is not a failure: rows in the default partition are
      // moved when the day's partition is created.
      await withLockTimeout(client, LOCK_MS, () =>
        client.query('select ensure_day($1::date)', [day]),
      );
    }
    return days.length > 0 ? missingDays(client, daysAhead) : [];
  });
  if (!missing) return [];
  await deleteOldCounts(planes);
  for (const table of ['activity', 'backlog_samples'])
    await data.query(`delete from ${table} where at < now() - interval '${KEPT_DAYS} days'`);
  return missing;
}

/** In one process at a time. */
export async function maintainControlPlane(control: pg.Pool, auditDays: number): Promise<void> {
  await withAdvisoryLock(control, 'gateway.control_upkeep', async (client) => {
    await deleteOldIssues(client);
    await deleteEndedKeys(client);
    await deleteOldAuditEntries(client, auditDays);
    await deleteOldRequests(client);
    await deleteOldPositions(client);
  });
}

/** From today by the Postgres clock, those for which any table lacks a partition. */
export async function missingDays(client: Querier, daysAhead: number): Promise<string[]> {
  const { rows } = await client.query<{ day: string }>(
    `select to_char(day, 'YYYY-MM-DD') as day from (select (now() at time zone 'UTC')::date + n as day from generate_series(0, $1::int) n) d
      where exists (select from unnest($2::text[]) parent where to_regclass(parent || '_' || to_char(day, 'YYYYMMDD')) is null) order by 1`,
    [daysAhead, PARENTS],
  );
  return rows.map(({ day }) => day);
}
