import type pg from 'pg';
import { batchRows, batchTexts, timeAt } from '../postgres/columns.js';
import { insertCountDeltas, finishedDeliveries, madeAttempts } from '../counts/count-deltas.js';
import { DUE_AT, membersOf, OCCURRED_AT, type EventRef } from '../events/event-ref.js';

export interface AttemptRecord extends EventRef {
  /** `id` is that of the delivery. */
  readonly attemptId: string;
  readonly endpointId: string;
  readonly number: number;
  readonly requestedAtMs: number;
  readonly durationMs: number;
  /** The URL of the endpoint. */
  readonly target: string;
  /** The number that its answer begins with, of HTTP the status. */
  readonly code: number | null;
  readonly errorClass: string | null;
  readonly detail: string | null;
  readonly responseHeaders: string | null;
  readonly responseBody: string | null;
  readonly status: 'success' | 'retry' | 'failure' | 'discarded';
  /** Infinity if the endpoint is paused. Null unless `status` is `retry`. */
  readonly dueInMs: number | null;
  readonly reason: string | null;
  readonly agentId: number;
  /** W3C trace context, stored so that the next attempt can link to it. */
  readonly traceparent: string | null;
  /** JSON output of the subscription's function. Set only for the first attempt that sends it. */
  readonly transformedData?: string | undefined;
  /** Whether the target works. Null if it was not reached for other reasons. Not stored. */
  readonly isUp: boolean | null;
  /** The target takes no deliveries any more. Not stored. */
  readonly isGone: boolean;
  /** The delivery is that of an operational event. Not stored. */
  readonly isOperational: boolean;
}

/** All later attempts of a delivery have this number, the largest in its column. */
export const ATTEMPT_NUMBER_MAX = 32_767;

const ATTEMPT = membersOf<AttemptRecord>(
  'projectId id attemptId occurredAtMs requestedAtMs endpointId number durationMs code errorClass detail target responseHeaders responseBody status dueInMs reason agentId traceparent',
);

/*
 * Attempts, delivery states and counts in one commit. Locks: the deliveries' rows, by primary key.
 * A delivery that this agent no longer holds (it lost its lease) keeps its status; the attempt is
 * recorded. So does one that has the attempt already and was claimed again by this agent: the answer
 * to the first try was lost. The join names the endpoint, so either index leads to one row: in a new partition
 * without statistics, the planner can choose either.
 */
const record = (members: readonly string[], { transformed }: { readonly transformed: boolean }) => `
  with u as materialized (
    select projectId::uuid as project, id::uuid as delivery, attemptId::uuid as attempt, ${OCCURRED_AT} as occurred_at,
           ${timeAt('requestedAtMs::bigint')} as requested_at, endpointId::uuid as endpoint, number::smallint as number,
           durationMs::int as duration, code::smallint as http_status, errorClass as class, detail as error, target as url, responseHeaders as response_headers,
           responseBody as response_body, status, ${DUE_AT} as due_at, reason, agentId::int as agent, traceparent${transformed ? ', transformedData as transformed_data' : ''}
    from ${batchRows(members, 1, { status: 'event_delivery_status' })}
  ),
  a as (
    insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, requested_at, endpoint_id, duration_ms, number, http_status, error_class, error, url, response_headers, response_body)
    select project, delivery, attempt, occurred_at, requested_at, endpoint, duration, number, http_status, class, error, url, response_headers, response_body from u
    on conflict do nothing
    returning project_id, endpoint_id, error_class, http_status
  ),
  d as (
    update event_deliveries d set status = u.status, attempts = u.number, claimed_by = null, next_attempt_at = u.due_at, reason = u.reason,
      traceparent = u.traceparent, updated_at = now()${transformed ? ', transformed_data = coalesce(u.transformed_data, d.transformed_data)' : ''}
    from u where d.project_id = u.project and d.id = u.delivery and d.occurred_at = u.occurred_at and d.endpoint_id = u.endpoint
      and d.claimed_by = u.agent and (d.attempts < u.number or d.attempts = ${ATTEMPT_NUMBER_MAX})
    returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.status
  )
  ${insertCountDeltas(finishedDeliveries('d'), madeAttempts('a'))}`;

/** A shorter statement for most batches, which have no transformed data. */
const RECORD = { name: 'record-attempts', text: record(ATTEMPT, { transformed: false }) };
const TRANSFORMED = [...ATTEMPT, 'transformedData'] as const;
const RECORD_TRANSFORMED = {
  name: 'record-transformed-attempts',
  text: record(TRANSFORMED, { transformed: true }),
};

/**
 * All or nothing. Skips attempts already stored. A delivery that the agent no longer holds keeps
 * its state.
 */
export async function recordAttempts(
  pool: pg.Pool,
  attempts: readonly AttemptRecord[],
): Promise<void> {
  const isTransformed = attempts.some(({ transformedData }) => transformedData !== undefined);
  await pool.query({
    ...(isTransformed ? RECORD_TRANSFORMED : RECORD),
    values: batchTexts(attempts, isTransformed ? TRANSFORMED : ATTEMPT),
  });
}
