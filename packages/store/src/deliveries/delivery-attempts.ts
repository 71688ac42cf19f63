import type pg from 'pg';
import { clean, column, split } from '../postgres/columns.js';
import { insertCountDeltas, finishedDeliveries, madeAttempts } from '../counts/count-deltas.js';
import { DUE_AT, OCCURRED_AT, type EventRef } from '../events/events.js';

/** A request to an endpoint and the new state of its delivery. */
export interface AttemptRecord extends EventRef {
  /** `id` is that of the delivery. */
  readonly attemptId: string;
  readonly endpointId: string;
  /** From 1. */
  readonly number: number;
  readonly requestedAtMs: number;
  readonly durationMs: number;
  readonly url: string;
  /** Null: no response. */
  readonly httpStatus: number | null;
  /** Null: delivered. */
  readonly errorClass: string | null;
  readonly error: string | null;
  /** JSON object. */
  readonly responseHeaders: string | null;
  readonly responseBody: string | null;
  /** The delivery's new status. */
  readonly status: 'success' | 'retry' | 'failure' | 'discarded';
  /** Milliseconds until the next attempt; null unless `retry`. Infinity: its endpoint is paused. */
  readonly dueInMs: number | null;
  /** Why the delivery failed or was discarded. */
  readonly reason: string | null;
  /** The agent that held the delivery. */
  readonly agentId: number;
  /** W3C trace context of the attempt, stored with the delivery so that the next attempt can link to it. */
  readonly traceparent: string | null;
}

/*
 * Attempts, the new status of their deliveries, and the counts of both in one commit. Locks: the deliveries' rows, by primary key. A delivery that this agent
 * no longer holds (it stalled and lost its lease) keeps its status; the attempt is recorded. The join names the endpoint, so that either index leads to one
 * row: without statistics, in the partition of a new day, the planner may choose either.
 */
const RECORD = `
  with u as materialized (
    select project::uuid as project, delivery::uuid as delivery, attempt::uuid as attempt, ${OCCURRED_AT} as occurred_at,
           timestamptz 'epoch' + requested::bigint * interval '1 millisecond' as requested_at, endpoint::uuid as endpoint, number::smallint as number, duration::int as duration,
           http_status::smallint as http_status, class, error, url, response_headers, response_body, status::event_delivery_status as status, ${DUE_AT} as due_at, reason, agent::int as agent, traceparent
    from unnest(${Array.from({ length: 19 }, (_, k) => split(k + 1)).join(', ')})
      as u(project, delivery, attempt, ms, requested, endpoint, number, duration, http_status, class, error, url, response_headers, response_body, status, due, reason, agent, traceparent)
  ),
  a as (
    insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, requested_at, endpoint_id, duration_ms, number, http_status, error_class, error, url, response_headers, response_body)
    select project, delivery, attempt, occurred_at, requested_at, endpoint, duration, number, http_status, class, error, url, response_headers, response_body from u
    on conflict do nothing
    returning project_id, endpoint_id, error_class, http_status
  ),
  d as (
    update event_deliveries d set status = u.status, attempts = u.number, claimed_by = null, next_attempt_at = u.due_at, reason = u.reason,
      traceparent = u.traceparent, updated_at = now()
    from u where d.project_id = u.project and d.id = u.delivery and d.occurred_at = u.occurred_at and d.endpoint_id = u.endpoint
      and d.claimed_by = u.agent
    returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.status
  )
  ${insertCountDeltas(finishedDeliveries('d'), madeAttempts('a'))}`;

/** Records a batch of attempts and the new states of their deliveries. Safe to repeat. */
export async function recordAttempts(pool: pg.Pool, attempts: readonly AttemptRecord[]): Promise<void> {
  await pool.query({
    name: 'record-attempts',
    text: RECORD,
    values: [
      column(attempts.map((a) => a.projectId)),
      column(attempts.map((a) => a.id)),
      column(attempts.map((a) => a.attemptId)),
      column(attempts.map((a) => a.occurredAtMs)),
      column(attempts.map((a) => a.requestedAtMs)),
      column(attempts.map((a) => a.endpointId)),
      column(attempts.map((a) => a.number)),
      column(attempts.map((a) => a.durationMs)),
      column(attempts.map((a) => a.httpStatus)),
      column(attempts.map((a) => a.errorClass)),
      column(attempts.map((a) => (a.error === null ? null : clean(a.error)))),
      column(attempts.map((a) => clean(a.url))),
      column(attempts.map((a) => a.responseHeaders)),
      column(attempts.map((a) => (a.responseBody === null ? null : clean(a.responseBody)))),
      column(attempts.map((a) => a.status)),
      column(attempts.map((a) => (a.dueInMs === null ? null : String(a.dueInMs)))),
      column(attempts.map((a) => (a.reason === null ? null : clean(a.reason)))),
      column(attempts.map((a) => a.agentId)),
      column(attempts.map((a) => a.traceparent)),
    ],
  });
}
