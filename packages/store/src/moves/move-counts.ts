import { applyPendingDeltas, COUNTS_LOCK } from '../counts/count-deltas.js';
import { withAdvisoryLock, withConnection } from '../postgres/advisory-lock.js';
import { holdMove, insertRows, movePages, type MovedRows } from './move-rows.js';

/** Counts by time. Those from before the switch are on the former shard alone. */
const TIMED = {
  activity: ['endpoint_id', 'at', 'kind', 'status'],
  backlog_samples: ['at'],
};
/** By their keys. A count that is on both shards becomes the sum. */
const COUNTS = {
  event_counts: 'project_id, source, status',
  event_delivery_counts: 'project_id, endpoint_id, source, event_type, status',
  delivery_attempt_counts: 'project_id, endpoint_id, delivered, http_status',
  activity: 'project_id, endpoint_id, at, kind, status',
};

/**
 * The new shard adds all counts in one commit, which also notes that it did. False if other
 * processes work on the counts.
 */
export async function moveCounts(rows: MovedRows, switchedAt: Date): Promise<boolean> {
  const { from, into, projectId, number } = rows;
  await applyPendingDeltas(from);
  const { rowCount: deltas } = await from.query(
    'select from count_changes where project_id = $1 limit 1',
    [projectId],
  );
  if (deltas !== 0) return false;
  const isOld = `t.project_id = $1 and t.at < $2::timestamptz - interval '10 minutes'`;
  for (const [name, key] of Object.entries(TIMED))
    await movePages(rows, { name, key, bytes: '0' }, isOld, [projectId, switchedAt]);
  const done = await withAdvisoryLock(into, COUNTS_LOCK, (target) =>
    withConnection(from, async (source) => {
      await source.query('begin');
      await target.query('begin');
      await holdMove(source, projectId, number);
      const { rowCount: isFirst } = await target.query(
        'update project_fences set is_counted = true where project_id = $1 and move_number = $2 and not is_counted',
        [projectId, number],
      );
      for (const [table, key] of Object.entries({ ...COUNTS, backlog_samples: undefined })) {
        const { rows: counts } = await source.query<{ row: string }>(
          `with gone as (delete from ${table} t where project_id = $1 returning t.*) select row_to_json(gone)::text as row from gone`,
          [projectId],
        );
        if (isFirst === 1)
          await insertRows(
            target,
            table,
            counts,
            key ? `(${key}) do update set n = ${table}.n + excluded.n` : 'do nothing',
          );
      }
      await target.query('commit');
      await source.query('commit');
      return true;
    }),
  );
  return done ?? false;
}
