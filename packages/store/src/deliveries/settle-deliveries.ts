import type { Pool } from 'pg';
import { finishedDeliveries, insertCountDeltas } from '../counts/count-deltas.js';
import { notifyDue } from './agents.js';

/** Rows per statement, so that agents can claim between the commits. */
const BATCH = 5000;

/** An endpoint, or all that wait in a project. */
interface Waiting {
  readonly projectId: string;
  readonly endpointId?: string | undefined;
}

/** The changes of waiting deliveries that a stored state asks for, and the deliveries that each concerns. */
const CHANGES = {
  discard: { set: `status = 'discarded', next_attempt_at = null`, of: ofEndpoint('$3') },
  hold: { set: `next_attempt_at = 'infinity'`, of: `next_attempt_at < 'infinity' and ${ofEndpoint('$3')}` },
  release: { set: `next_attempt_at = now()`, of: `next_attempt_at = 'infinity' and endpoint_id = $3` },
} as const;

/**
 * Makes the waiting deliveries of an endpoint agree with its stored state: of a deleted one they are discarded, of a paused one held, and of any other nothing stays
 * held. Without an endpoint it discards those of a deleted project, and leaves the others alone. The state is the whole intention, read before each batch: a call that
 * is repeated, goes on after a kill, or runs beside others ends with the same. Skips rows that are being claimed. Returns how many it changed.
 */
export async function settleDeliveries(pool: Pool, of: Waiting, signal?: AbortSignal): Promise<number> {
  let [changed, released] = [0, 0];
  while (!signal?.aborted) {
    const { change, reason } = await readChange(pool, of);
    if (!change) break;
    const n = await changeBatch(pool, of, change, reason);
    changed += n;
    if (change === 'release') released += n;
    if (n < BATCH) break;
  }
  if (released > 0) await notifyDue(pool, [of.projectId]);
  return changed;
}

/** Two primary key probes. No lock. */
async function readChange(
  pool: Pool,
  { projectId, endpointId }: Waiting,
): Promise<{ change: keyof typeof CHANGES | null; reason: string | null }> {
  const { rows } = await pool.query<{ reason: string | null; status: string | null }>({
    name: 'read-endpoint-state',
    text: `select case when p.id is null then 'The project was deleted.' when $2::uuid is not null and e.id is null then 'The endpoint was deleted.' end as reason, e.status
           from (select) as one
           left join projects p on p.id = $1 and p.deleted_at is null
           left join endpoints e on e.project_id = $1 and e.id = $2 and e.deleted_at is null`,
    values: [projectId, endpointId ?? null],
  });
  const { reason, status } = rows[0]!;
  if (reason !== null) return { change: 'discard', reason };
  return { change: status === null ? null : status === 'paused' ? 'hold' : 'release', reason };
}

/** Selects the deliveries that wait for an endpoint. They are compared and ordered as rows, so that no index fits but event_deliveries_by_endpoint. */
function ofEndpoint(endpoint: string): string {
  return `status <> 'processing' and (endpoint_id, status) >= (${endpoint}, 'scheduled') and (endpoint_id, status) <= (${endpoint}, 'retry')
    order by endpoint_id, status, id`;
}

/**
 * Locks: the rows of one batch, skipping rows being claimed. The inner read scans what is to be changed alone: of a project by event_deliveries_due, of an endpoint by
 * event_deliveries_by_endpoint or event_deliveries_held. The join names the endpoint, so that any index leads to one row.
 */
async function changeBatch(
  pool: Pool,
  { projectId, endpointId }: Waiting,
  change: keyof typeof CHANGES,
  reason: string | null,
): Promise<number> {
  const values = endpointId === undefined ? [projectId, reason] : [projectId, reason, endpointId];
  const { rows } = await pool.query<{ n: number }>(
    `with waiting as (
       select project_id, id, occurred_at, endpoint_id from event_deliveries
       where project_id = $1 and ${endpointId === undefined ? `status in ('scheduled', 'retry')` : CHANGES[change].of}
       limit ${BATCH} for update skip locked
     ),
     d as (
       update event_deliveries d set ${CHANGES[change].set}, reason = coalesce($2, d.reason), updated_at = now() from waiting w
       where d.project_id = w.project_id and d.id = w.id and d.occurred_at = w.occurred_at and d.endpoint_id = w.endpoint_id
       returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.status
     ),
     counted as (${insertCountDeltas(finishedDeliveries('d'))})
     select count(*)::int as n from d`,
    values,
  );
  return rows[0]!.n;
}

const WAITING = `status in ('scheduled', 'retry') and next_attempt_at <= 'infinity'`;

/*
 * Finds deliveries that wait although their endpoint or project can no longer have them: in deleted projects; held at endpoints that are not paused; and at endpoints that were
 * deleted lately, whose later ones are discarded when they are due. No lock. Each step of a recursion is one probe of event_deliveries_due or event_deliveries_held per
 * partition: the cost is that of the projects with waiting deliveries and of the endpoints with held ones, however many deliveries they have. Conditions and orders are
 * such that no other index fits, and subqueries with a limit are no joins, which might read all that waits.
 */
const UNSETTLED = `
  with recursive busy as (
    (select project_id from event_deliveries where ${WAITING} order by project_id, next_attempt_at limit 1)
    union all
    select n.project_id from busy b cross join lateral (
      select project_id from event_deliveries where ${WAITING} and project_id > b.project_id order by project_id, next_attempt_at limit 1) n
  ),
  held as (
    (select project_id, endpoint_id from event_deliveries where next_attempt_at = 'infinity' order by project_id, endpoint_id limit 1)
    union all
    select n.project_id, n.endpoint_id from held h cross join lateral (
      select project_id, endpoint_id from event_deliveries
      where next_attempt_at = 'infinity' and (project_id, endpoint_id) > (h.project_id, h.endpoint_id) order by project_id, endpoint_id limit 1) n
  )
  select project_id as "projectId", null as "endpointId" from busy b
  where (select true from projects p where p.id = b.project_id and p.deleted_at is null limit 1) is null
  union all
  select project_id, endpoint_id from held h
  where (select true from endpoints e where e.project_id = h.project_id and e.id = h.endpoint_id and e.status = 'paused' and e.deleted_at is null limit 1) is null
  union all
  select project_id, id from endpoints e
  where deleted_at > now() - $1::float8 * interval '1 second' and (
    select true from event_deliveries where project_id = e.project_id and ${ofEndpoint('e.id')} limit 1)`;

/**
 * Settles all waiting deliveries whose endpoint or project can no longer have them, whoever wrote them and whenever: what a kill has left half done, and what agents
 * wrote that did not know yet. Returns how many it changed.
 *
 * @param deletedSeconds how long ago endpoints were deleted whose deliveries are looked at before they are due
 */
export async function sweepDeliveries(pool: Pool, deletedSeconds: number, signal?: AbortSignal): Promise<number> {
  const { rows } = await pool.query<{ projectId: string; endpointId: string | null }>({
    name: 'read-unsettled',
    text: UNSETTLED,
    values: [deletedSeconds],
  });
  let changed = 0;
  for (const { projectId, endpointId } of rows)
    changed += await settleDeliveries(pool, { projectId, endpointId: endpointId ?? undefined }, signal);
  return changed;
}
