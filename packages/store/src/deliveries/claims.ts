import type pg from 'pg';
import { batchRows, batchTexts, clean } from '../postgres/columns.js';
import { insertCountDeltas, finishedDeliveries } from '../counts/count-deltas.js';
import { DUE_AT, membersOf, OCCURRED_AT, type EventRef } from '../events/events.js';
import { WAIT_REASONS, type WaitReason } from './postponed-deliveries.js';

export type EventDeliveryStatus = 'scheduled' | 'processing' | 'retry' | 'success' | 'failure' | 'discarded';

export interface ClaimedDelivery extends EventRef {
  readonly eventId: string;
  readonly endpointId: string;
  readonly attempts: number;
  readonly eventType: string;
  /** Null: created over the API. */
  readonly sourceId: string | null;
  /** Of the previous attempt, if it was traced. */
  readonly traceparent: string | null;
  readonly headers: string;
  readonly data: string;
}

/*
 * Locks: the claimed rows, skipping rows that another agent is claiming. The scan of event_deliveries_due follows next_attempt_at within one project and
 * stops at the limit; the project is fixed because a sharded Postgres rejects a locking claim across shards. `scannedTo` is one second early: whoever makes a
 * delivery due takes the time before its commit.
 */
const CLAIM = `
  with due as (
    select project_id, id, occurred_at, next_attempt_at from event_deliveries
    where project_id = $2 and status in ('scheduled', 'retry') and status = any ($3::event_delivery_status[])
      and next_attempt_at >= $6::timestamptz and next_attempt_at <= now() and endpoint_id <> all ($4::uuid[])
    order by next_attempt_at limit $5
    for update skip locked
  ),
  claimed as (
    update event_deliveries d set status = 'processing', claimed_by = $1, next_attempt_at = null, reason = null, updated_at = now()
    from due where d.project_id = due.project_id and d.id = due.id and d.occurred_at = due.occurred_at
    returning d.project_id, d.id, d.occurred_at, d.event_id, d.endpoint_id, d.attempts, d.traceparent
  )
  select w.scanned_to as "scannedTo", c.project_id as "projectId", c.id, (extract(epoch from c.occurred_at) * 1000)::float8 as "occurredAtMs",
         c.event_id as "eventId", c.endpoint_id as "endpointId", c.attempts, c.traceparent, e.event_type as "eventType", e.source_id as "sourceId", e.headers, e.data
  from (select (case when count(*) < $5 then now() else max(next_attempt_at) end - interval '1 second')::text as scanned_to from due) w
  left join (claimed c join events e on e.project_id = c.project_id and e.id = c.event_id and e.occurred_at = c.occurred_at) on true`;

interface Claim {
  readonly projectId: string;
  readonly statuses: readonly ('scheduled' | 'retry')[];
  readonly exceptEndpoints: readonly string[];
  readonly limit: number;
  readonly from?: string | undefined;
}

/** Claims due deliveries of a project, oldest first. Earlier ones than `scannedTo` belong to endpoints that were left out. */
export async function claimDue(
  pool: pg.Pool,
  agentId: number,
  { projectId, statuses, exceptEndpoints, limit, from = '-infinity' }: Claim,
): Promise<{ readonly claimed: ClaimedDelivery[]; readonly scannedTo: string }> {
  // The only row of a claim that got nothing has the cursor alone.
  const { rows } = await pool.query<(ClaimedDelivery | { readonly projectId: null }) & { readonly scannedTo: string }>({
    name: 'claim-due',
    text: CLAIM,
    values: [agentId, projectId, statuses, exceptEndpoints, limit, from],
  });
  const claimed = rows.flatMap(({ scannedTo: _, ...delivery }) => (delivery.projectId === null ? [] : delivery));
  return { claimed, scannedTo: rows[0]!.scannedTo };
}

/** Identifies a delivery. With the endpoint, either index by project leads to one row, whichever the planner takes. */
export interface DeliveryRef extends EventRef {
  readonly endpointId: string;
}

const DELIVERY = membersOf<DeliveryRef>('projectId id occurredAtMs endpointId');

/** Deliveries that the agent claimed over `olderThanMs` ago. Scans event_deliveries_claimed, which holds only deliveries in flight. No lock. */
export async function readClaimed(pool: pg.Pool, agentId: number, olderThanMs: number): Promise<DeliveryRef[]> {
  const { rows } = await pool.query<DeliveryRef>({
    name: 'read-claimed',
    text: `select project_id as "projectId", id, endpoint_id as "endpointId", (extract(epoch from occurred_at) * 1000)::float8 as "occurredAtMs"
           from event_deliveries where status = 'processing' and claimed_by = $1 and updated_at <= now() - $2::float8 * interval '1 millisecond'`,
    values: [agentId, olderThanMs],
  });
  return rows;
}

/** What becomes of released deliveries: due after `dueInMs` plus up to `spreadMs` at random, or discarded. */
export type Release =
  | { readonly to: 'due'; readonly dueInMs: number; readonly spreadMs?: number; readonly reason?: WaitReason }
  | { readonly to: 'discarded'; readonly reason: string };

/** Releases held deliveries without an attempt, or discards them. `dueInMs` is Infinity for a paused endpoint. Locks: their rows, by primary key. */
export async function releaseDeliveries(pool: pg.Pool, agentId: number, deliveries: readonly DeliveryRef[], how: Release): Promise<void> {
  await pool.query({
    name: 'return-deliveries',
    text: `with d as (
           update event_deliveries d set claimed_by = null, next_attempt_at = ${DUE_AT} + random() * $8::float8 * interval '1 millisecond', reason = u.reason, updated_at = now(),
             status = case when u.dueInMs is null then 'discarded' when d.attempts = 0 then 'scheduled' else 'retry' end::event_delivery_status
           from (select projectId::uuid as project, id::uuid as delivery, ${OCCURRED_AT} as occurred_at, endpointId::uuid as endpoint, $6::text as dueInMs, $7::text as reason
                 from ${batchRows(DELIVERY)}) u
           where d.project_id = u.project and d.id = u.delivery and d.occurred_at = u.occurred_at and d.endpoint_id = u.endpoint and d.claimed_by = $5
           returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.status)
           ${insertCountDeltas(finishedDeliveries('d'))}`,
    values: [
      ...batchTexts(deliveries, DELIVERY),
      agentId,
      how.to === 'due' ? String(how.dueInMs) : null,
      how.to === 'due' ? (how.reason ? WAIT_REASONS[how.reason] : null) : clean(how.reason),
      how.to === 'due' ? (how.spreadMs ?? 0) : 0,
    ],
  });
}

/** Deletes dead agents and makes their deliveries due, with `orphans` those whose agent has no row. Locks: those rows. Scans event_deliveries_claimed. */
export async function recoverDeliveries(pool: pg.Pool, { orphans }: { orphans: boolean }): Promise<number> {
  const { rowCount } = await pool.query({
    name: orphans ? 'recover-orphans' : 'recover-deliveries',
    text: `with dead as (delete from agents where expires_at <= now() returning id)
           update event_deliveries d set status = case when d.attempts = 0 then 'scheduled' else 'retry' end::event_delivery_status, claimed_by = null,
             next_attempt_at = now(), recovered = d.recovered + 1, updated_at = now()
           ${orphans ? `where d.status = 'processing' and (d.claimed_by in (select id from dead) or not exists (select from agents a where a.id = d.claimed_by))` : `from dead where d.status = 'processing' and d.claimed_by = dead.id`}`,
  });
  return rowCount ?? 0;
}
