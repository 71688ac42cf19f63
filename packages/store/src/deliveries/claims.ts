import type pg from 'pg';
import { clean, column, split } from '../postgres/columns.js';
import { insertCountDeltas, finishedDeliveries } from '../counts/count-deltas.js';
import { DUE_AT, OCCURRED_AT, type EventRef } from '../events/events.js';
import { WAIT_REASONS, type WaitReason } from './postponed-deliveries.js';

export type EventDeliveryStatus = 'scheduled' | 'processing' | 'retry' | 'success' | 'failure' | 'discarded';

/** A delivery that this agent holds, with what is needed to send it. */
export interface ClaimedDelivery extends EventRef {
  readonly eventId: string;
  readonly endpointId: string;
  /** Attempts recorded so far. */
  readonly attempts: number;
  readonly eventType: string;
  /** Null: created over the API. */
  readonly sourceId: string | null;
  /** Of the attempt before, when it is to be tried again and was traced. */
  readonly traceparent: string | null;
  readonly headers: string;
  readonly data: string;
}

interface ClaimedRow {
  walked_to: string;
  /** Null in the only row of a claim that got nothing, as all that follows. */
  project_id: string | null;
  id: string;
  ms: string;
  event_id: string;
  endpoint_id: string;
  attempts: number;
  event_type: string;
  source_id: string | null;
  traceparent: string | null;
  headers: string;
  data: string;
}

/*
 * Lock: the claimed rows, skipping those that another agent is claiming. The scan walks event_deliveries_due of one project in order of
 * next_attempt_at and stops at the limit; a project is named because a sharded Postgres refuses a locking claim across shards. How far it came is told
 * a second early: whoever makes a delivery due takes the time before the commit.
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
  select w.walked_to, c.project_id, c.id, (extract(epoch from c.occurred_at) * 1000)::bigint as ms, c.event_id, c.endpoint_id, c.attempts, c.traceparent,
         e.event_type, e.source_id, e.headers, e.data
  from (select (case when count(*) < $5 then now() else max(next_attempt_at) end - interval '1 second')::text as walked_to from due) w
  left join (claimed c join events e on e.project_id = c.project_id and e.id = c.event_id and e.occurred_at = c.occurred_at) on true`;

/**
 * Takes deliveries of a project that are due.
 *
 * @param statuses `scheduled` for first attempts, `retry` for later ones
 * @param exceptEndpoints endpoints that have no room now
 * @param from the time from which on they are looked for, as a claim before has told it; the oldest come first
 * @returns them, and how far it has looked: what is due before that is of the endpoints that were left out
 */
export async function claimDue(
  pool: pg.Pool,
  agentId: number,
  {
    projectId,
    statuses,
    exceptEndpoints,
    limit,
    from = '-infinity',
  }: {
    projectId: string;
    statuses: readonly ('scheduled' | 'retry')[];
    exceptEndpoints: readonly string[];
    limit: number;
    from?: string | undefined;
  },
): Promise<{ readonly claimed: ClaimedDelivery[]; readonly walkedTo: string }> {
  const { rows } = await pool.query<ClaimedRow>({
    name: 'claim-due',
    text: CLAIM,
    values: [agentId, projectId, statuses, exceptEndpoints, limit, from],
  });
  const claimed = rows
    .filter((row): row is ClaimedRow & { project_id: string } => row.project_id !== null)
    .map((row) => ({
      projectId: row.project_id,
      id: row.id,
      occurredAtMs: Number(row.ms),
      eventId: row.event_id,
      endpointId: row.endpoint_id,
      attempts: row.attempts,
      eventType: row.event_type,
      sourceId: row.source_id,
      traceparent: row.traceparent,
      headers: row.headers,
      data: row.data,
    }));
  return { claimed, walkedTo: rows[0]!.walked_to };
}

/** What names a delivery. With its endpoint either of the two indexes by project leads to its row, whichever the planner takes. */
export interface DeliveryRef extends EventRef {
  readonly endpointId: string;
}

/** Deliveries that an agent has claimed and not ended for a while. One walk of event_deliveries_claimed, which holds what is under way only. */
export async function readClaimed(pool: pg.Pool, agentId: number, olderThanMs: number): Promise<DeliveryRef[]> {
  const { rows } = await pool.query<{ project_id: string; id: string; endpoint_id: string; ms: string }>({
    name: 'read-claimed',
    text: `select project_id, id, endpoint_id, (extract(epoch from occurred_at) * 1000)::bigint as ms from event_deliveries
           where status = 'processing' and claimed_by = $1 and updated_at <= now() - $2::float8 * interval '1 millisecond'`,
    values: [agentId, olderThanMs],
  });
  return rows.map(({ project_id: projectId, id, endpoint_id: endpointId, ms }) => ({
    projectId,
    id,
    endpointId,
    occurredAtMs: Number(ms),
  }));
}

/** How held deliveries end without an attempt: due after a while, by chance up to `spreadMs` later, or discarded. */
export type Return =
  | { readonly to: 'due'; readonly dueInMs: number; readonly spreadMs?: number; readonly reason?: WaitReason }
  | { readonly to: 'discarded'; readonly reason: string };

/** Gives held deliveries back unsent, due after a while (Infinity: when their endpoint is active again), or discards them. Attempts stay as they are. */
export async function releaseDeliveries(pool: pg.Pool, agentId: number, deliveries: readonly DeliveryRef[], how: Return): Promise<void> {
  await pool.query({
    name: 'return-deliveries',
    text: `with d as (
           update event_deliveries d set claimed_by = null, next_attempt_at = ${DUE_AT} + random() * $8::float8 * interval '1 millisecond', reason = u.reason, updated_at = now(),
             status = case when u.due is null then 'discarded' when d.attempts = 0 then 'scheduled' else 'retry' end::event_delivery_status
           from (select project::uuid as project, delivery::uuid as delivery, ${OCCURRED_AT} as occurred_at, endpoint::uuid as endpoint, $5::text as due, $6::text as reason
                 from unnest(${split(1)}, ${split(2)}, ${split(3)}, ${split(7)}) as u(project, delivery, ms, endpoint)) u
           where d.project_id = u.project and d.id = u.delivery and d.occurred_at = u.occurred_at and d.endpoint_id = u.endpoint and d.claimed_by = $4
           returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.status)
           ${insertCountDeltas(finishedDeliveries('d'))}`,
    values: [
      column(deliveries.map((d) => d.projectId)),
      column(deliveries.map((d) => d.id)),
      column(deliveries.map((d) => d.occurredAtMs)),
      agentId,
      how.to === 'due' ? String(how.dueInMs) : null,
      how.to === 'due' ? (how.reason ? WAIT_REASONS[how.reason] : null) : clean(how.reason),
      column(deliveries.map((d) => d.endpointId)),
      how.to === 'due' ? (how.spreadMs ?? 0) : 0,
    ],
  });
}

/**
 * Returns what dead agents held: their rows in `agents` are removed, their deliveries are due at once and marked as recovered.
 *
 * @param orphans also deliveries whose agent has no row at all (an agent that stalled, was swept, and then committed)
 * @returns how many deliveries move again
 */
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
