import type { Pool } from 'pg';
import { finishedDeliveries, insertCountDeltas } from '../counts/count-deltas.js';
import { notifyDue } from './agents.js';

/** Rows per statement, so that agents can claim between the commits. */
const BATCH = 5000;

interface EndpointRef {
  readonly projectId: string;
  readonly endpointId: string;
}

/**
 * Repeats a statement that changes up to `BATCH` waiting deliveries until it finds no more. Locks: the rows of one batch, skipping rows being claimed. The
 * inner read scans event_deliveries_due of the project, which has waiting deliveries only: `where` bounds next_attempt_at, and hides the endpoint from
 * indexes, which would read its whole history. The join names the endpoint, so that either index leads to one row.
 */
async function changeWaiting(pool: Pool, set: string, where: string, values: readonly unknown[]): Promise<number> {
  for (let changed = 0; ;) {
    const { rows } = await pool.query<{ n: number }>(
      `with waiting as (
         select project_id, id, occurred_at, endpoint_id from event_deliveries
         where project_id = $1 and status in ('scheduled', 'retry') and ${where}
         limit ${BATCH} for update skip locked
       ),
       d as (
         update event_deliveries d set ${set}, updated_at = now() from waiting w
         where d.project_id = w.project_id and d.id = w.id and d.occurred_at = w.occurred_at and d.endpoint_id = w.endpoint_id
         returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.status
       ),
       counted as (${insertCountDeltas(finishedDeliveries('d'))})
       select count(*)::int as n from d`,
      [...values],
    );
    const { n } = rows[0]!;
    changed += n;
    if (n < BATCH) return changed;
  }
}

function ofEndpoint(parameter: string): string {
  return `case when endpoint_id = ${parameter} then true else false end`;
}

/** Pauses the waiting deliveries of an endpoint. Agents pause those they hold. */
export function pauseDeliveries(pool: Pool, { projectId, endpointId }: EndpointRef): Promise<number> {
  return changeWaiting(pool, `next_attempt_at = 'infinity'`, `next_attempt_at < 'infinity' and ${ofEndpoint('$2')}`, [
    projectId,
    endpointId,
  ]);
}

/** Makes the paused deliveries of an endpoint due now, in batches, and notifies the agents. Returns their number. */
export async function resumeDeliveries(pool: Pool, { projectId, endpointId }: EndpointRef): Promise<number> {
  const where = `next_attempt_at = 'infinity' and ${ofEndpoint('$2')}`;
  const resumed = await changeWaiting(pool, 'next_attempt_at = now()', where, [projectId, endpointId]);
  if (resumed > 0) await notifyDue(pool, [projectId]);
  return resumed;
}

/**
 * Discards the waiting deliveries, paused ones included, of an endpoint or else of the whole project, in batches. Skips rows that are being
 * claimed. Returns the number discarded.
 */
export function discardWaiting(
  pool: Pool,
  { projectId, endpointId }: { projectId: string; endpointId?: string | undefined },
  reason: string,
): Promise<number> {
  const where = `next_attempt_at <= 'infinity' and ${endpointId === undefined ? 'true' : ofEndpoint('$3')}`;
  const values = [projectId, reason, ...(endpointId === undefined ? [] : [endpointId])];
  return changeWaiting(pool, `status = 'discarded', next_attempt_at = null, reason = $2`, where, values);
}

/**
 * Discards the waiting deliveries of projects that were deleted within a day: an agent that was sending one gives it back after the deletion, and nobody claims it.
 * Returns the number discarded.
 */
export async function discardDeleted(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(
    `select id from projects p where deleted_at > now() - interval '1 day'
       and exists (select from event_deliveries where project_id = p.id and status in ('scheduled', 'retry'))`,
  );
  let discarded = 0;
  for (const { id } of rows) discarded += await discardWaiting(pool, { projectId: id }, 'The project was deleted.');
  return discarded;
}
