import * as assert from 'uvu/assert';
import { applyPendingDeltas } from '#store/counts/count-deltas';
import type { Database } from '#store/postgres/database';
import type { Rows } from './schema.js';

/** Counts of the rows, and stored counts, as comparable lines. */
const COUNTS = {
  events: [
    `select project_id || ' ' || coalesce(source_id::text, 'api') || ' ' || status || ' ' || count(*) as line from events where status <> 'pending' group by project_id, source_id, status`,
    `select project_id || ' ' || source || ' ' || status || ' ' || n as line from event_counts where n <> 0`,
  ],
  deliveries: [
    `select project_id || ' ' || endpoint_id || ' ' || coalesce(source_id::text, 'api') || ' ' || event_type || ' ' || status || ' ' || count(*) as line
     from event_deliveries where status in ('success', 'failure', 'discarded') group by project_id, endpoint_id, source_id, event_type, status`,
    `select project_id || ' ' || endpoint_id || ' ' || source || ' ' || event_type || ' ' || status || ' ' || n as line from event_delivery_counts where n <> 0`,
  ],
  attempts: [
    `select project_id || ' ' || endpoint_id || ' ' || (error_class is null) || ' ' || coalesce(http_status, 0) || ' ' || count(*) as line
     from delivery_attempts group by project_id, endpoint_id, error_class is null, http_status`,
    `select project_id || ' ' || endpoint_id || ' ' || delivered || ' ' || http_status || ' ' || n as line from delivery_attempt_counts where n <> 0`,
  ],
} as const;

/** Folds the stored counts, and compares them with the rows. Returns the number of counts. */
export async function assertCounted(db: Pick<Database, 'pool'> & { rows: Rows }): Promise<number> {
  await applyPendingDeltas(db.pool);
  let total = 0;
  for (const [thing, [made, counted]] of Object.entries(COUNTS)) {
    const lines = async (sql: string) =>
      (await db.rows<{ line: string }>(sql)).map(({ line }) => line).sort();
    const expected = await lines(made);
    assert.equal(await lines(counted), expected, thing);
    total += expected.length;
  }
  return total;
}

export async function forgetAllCounts(db: { rows: Rows }): Promise<void> {
  for (const table of [
    'count_changes',
    'event_counts',
    'event_delivery_counts',
    'delivery_attempt_counts',
    'activity',
    'backlog_samples',
    'metric_samples',
  ])
    await db.rows(`delete from ${table}`);
}
