import type { Pool } from 'pg';
import { notifyDue } from './agents.js';
import { insertCountDeltas, finishedDeliveries } from '../counts/count-deltas.js';

/** Rows per statement: each commit is short, and agents go on between them. */
const BATCH = 5000;

interface EndpointRef {
  readonly projectId: string;
  readonly endpointId: string;
}

/**
 * Runs a statement that changes up to `BATCH` waiting deliveries until it finds no more. Lock: the rows of one batch, without those that an agent is
 * claiming. The inner read walks event_deliveries_due of one project, which holds waiting deliveries only: every statement bounds next_attempt_at, and
 * the endpoint stands where no index can use it, or a batch would read the whole history of that endpoint. The join names the endpoint too, so that
 * either index leads to one row.
 */
async function changeWaiting(
  pool: Pool,
  { set, where, values }: { set: string; where: string; values: readonly unknown[] },
): Promise<number> {
  let changed = 0;
  for (;;) {
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

/** Holds the waiting deliveries of a paused endpoint. Deliveries that an agent has in hand are held by the agent. */
export function pauseDeliveries(pool: Pool, { projectId, endpointId }: EndpointRef): Promise<number> {
  return changeWaiting(pool, {
    set: `next_attempt_at = 'infinity'`,
    where: `next_attempt_at < 'infinity' and ${ofEndpoint('$2')}`,
    values: [projectId, endpointId],
  });
}

/** Makes the held deliveries of an endpoint due and tells the agents which project they are of. */
export async function resumeDeliveries(pool: Pool, { projectId, endpointId }: EndpointRef): Promise<number> {
  const released = await changeWaiting(pool, {
    set: 'next_attempt_at = now()',
    where: `next_attempt_at = 'infinity' and ${ofEndpoint('$2')}`,
    values: [projectId, endpointId],
  });
  if (released > 0) await notifyDue(pool, [projectId]);
  return released;
}

/** Discards the waiting deliveries of an endpoint, or of a whole project when no endpoint is named. */
export function discardWaiting(
  pool: Pool,
  { projectId, endpointId }: { projectId: string; endpointId?: string | undefined },
  reason: string,
): Promise<number> {
  return changeWaiting(pool, {
    set: `status = 'discarded', next_attempt_at = null, reason = $2`,
    where: `next_attempt_at <= 'infinity' and ${endpointId === undefined ? 'true' : ofEndpoint('$3')}`,
    values: [projectId, reason, ...(endpointId === undefined ? [] : [endpointId])],
  });
}
