import type pg from 'pg';
import { batchOf, timeAt, type BatchColumn } from '../postgres/columns.js';
import { insertCountDeltas, finishedDeliveries, madeAttempts } from '../counts/count-deltas.js';
import { dueAt, isSameDelivery, REF_COLUMNS, type EventRef } from '../events/event-ref.js';
import { repairKeys } from '../ordering/settle-keys.js';
import { DROPPED, isSameKey, PASSED, TURNS, type KeyTurn } from '../events/turns.js';

export interface AttemptRecord extends EventRef {
  readonly attemptId: string;
  readonly endpointId: string;
  readonly number: number;
  readonly requestedAtMs: number;
  readonly durationMs: number;
  readonly target: string;
  /** The beginning of the answer, in HTTP the status. */
  readonly code: number | null;
  readonly errorClass: string | null;
  readonly detail: string | null;
  readonly responseHeaders: string | null;
  readonly responseBody: string | null;
  readonly status: 'success' | 'retry' | 'failure' | 'discarded';
  /** Infinity for a paused endpoint. Null unless `status` is `retry`. */
  readonly dueInMs: number | null;
  readonly reason: string | null;
  readonly agentId: number;
  /** W3C trace context, to which the next attempt can link. */
  readonly traceparent: string | null;
  /** Output of the subscription's function. Set only for the first attempt that sends it. */
  readonly transformedData?: string | undefined;
  /** Whether the target works. Null if it was not reached for other reasons. Not stored. */
  readonly isUp: boolean | null;
  /**
   * The target asked for fewer requests, after this time or, if null, without naming one. Not
   * stored.
   */
  readonly askedSeconds?: number | null | undefined;
  /** The target takes no deliveries any more. Not stored. */
  readonly isGone: boolean;
  /** The delivery is that of an operational event. Not stored. */
  readonly isOperational: boolean;
  /**
   * Its effect at its end on those behind it with the same order key. Null or undefined if it is not
   * ordered.
   */
  readonly onEnd?: 'pass' | 'park' | null;
}

/** All later attempts of a delivery have this number, the largest in its column. */
export const ATTEMPT_NUMBER_MAX = 32_767;

/** Columns of `delivery_attempts`. `project_id`, `id` and `occurred_at` are those of the delivery. */
const OF_ATTEMPT: readonly BatchColumn<AttemptRecord>[] = [
  ['requested_at', 'requestedAtMs', (ms) => timeAt(`${ms}::bigint`)],
  ['endpoint_id', 'endpointId', 'uuid'],
  ['duration_ms', 'durationMs', 'int'],
  ['number', 'number', 'smallint'],
  ['http_status', 'code', 'smallint'],
  ['error_class', 'errorClass'],
  ['error', 'detail'],
  ['url', 'target'],
  ['response_headers', 'responseHeaders'],
  ['response_body', 'responseBody'],
];
const OF_DELIVERY: readonly BatchColumn<AttemptRecord>[] = [
  ['status', 'status', 'event_delivery_status[]'],
  ['due_at', 'dueInMs', dueAt],
  ['reason', 'reason'],
  ['agent', 'agentId', 'int'],
  ['traceparent', 'traceparent'],
];
const OF_ORDER: readonly BatchColumn<AttemptRecord>[] = [['on_end', 'onEnd']];
const { names: NAMES } = batchOf(OF_ATTEMPT);

/**
 * For the deliveries in the CTE `d`: the turn of a key stays with its delivery when it is parked, and
 * passes in the same commit otherwise.
 */
const ENDED = `ended as materialized (
    select project_id, endpoint_id, order_key, id, on_end = 'park' and status = 'failure' as parks
    from d where order_key is not null and status in ('success', 'failure', 'discarded')
  ),
  parked as (
    update ordered_keys k set parked_at = now() from ended e where e.parks and ${isSameKey('k', 'e')} and k.delivery_id = e.id
  ),
  over as materialized (select project_id, endpoint_id, order_key, id from ended where not parks),
  ${PASSED}`;

/*
 * Attempts, delivery states and counts in one commit. Locks: the deliveries' rows, by primary key.
 * A delivery that this agent no longer holds (it lost its lease) keeps its status; the attempt is
 * recorded. So does one that has the attempt already and was claimed again by this agent: the answer
 * to the first try was lost.
 */
const recording = (
  name: string,
  transformed: readonly BatchColumn<AttemptRecord>[] = [],
  isOrdered = false,
) => {
  const batch = batchOf<AttemptRecord>([
    ...REF_COLUMNS,
    ['attempt', 'attemptId', 'uuid'],
    ...OF_ATTEMPT,
    ...OF_DELIVERY,
    ...transformed,
    ...(isOrdered ? OF_ORDER : []),
  ]);
  const more = transformed.map(([it]) => `, ${it} = coalesce(u.${it}, d.${it})`).join('');
  const text = `
  with u as materialized (${batch.select()}),
  a as (
    insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, ${NAMES})
    select project_id, id, attempt, occurred_at, ${NAMES} from u
    on conflict do nothing
    returning project_id, endpoint_id, error_class, http_status
  ),
  d as (
    update event_deliveries d set status = u.status, attempts = u.number, claimed_by = null, next_attempt_at = u.due_at, reason = u.reason,
      traceparent = u.traceparent, updated_at = now()${more}
    from u where ${isSameDelivery('d', 'u')} and d.claimed_by = u.agent and (d.attempts < u.number or d.attempts = ${ATTEMPT_NUMBER_MAX})
    returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.status${isOrdered ? ', d.id, d.order_key, u.on_end' : ''}
  )
  ${isOrdered ? `, ${ENDED}, counted as (` : ''}${insertCountDeltas(finishedDeliveries('d'), madeAttempts('a'))}${isOrdered ? `) ${TURNS} ${DROPPED}` : ''}`;
  return { name, text, batch };
};

/** A shorter statement for most batches, which have no transformed data. */
const RECORD = recording('record-attempts');
const RECORD_TRANSFORMED = recording('record-transformed-attempts', [
  ['transformed_data', 'transformedData'],
]);

const RECORD_ORDERED = recording(
  'record-ordered-attempts',
  [['transformed_data', 'transformedData']],
  true,
);

/**
 * As `recordAttempts`, for deliveries with an order key. Returns what is due now.
 *
 * @throws also if only the turns could not be settled; a repetition, or a sweep, settles them
 */
export async function recordOrderedAttempts(
  pool: pg.Pool,
  attempts: readonly AttemptRecord[],
): Promise<KeyTurn[]> {
  const { name, text, batch } = RECORD_ORDERED;
  const { rows } = await pool.query<KeyTurn>({ name, text, values: batch.texts(attempts) });
  const due = rows.filter(({ eventId }) => eventId !== null);
  const unsettled = rows.filter(({ eventId }) => eventId === null);
  return unsettled.length === 0 ? due : [...due, ...(await repairKeys(pool, unsettled))];
}

/**
 * All or nothing. Skips attempts already stored. A delivery that the agent no longer holds keeps
 * its state.
 */
export async function recordAttempts(
  pool: pg.Pool,
  attempts: readonly AttemptRecord[],
): Promise<void> {
  const isTransformed = attempts.some(({ transformedData }) => transformedData !== undefined);
  const { name, text, batch } = isTransformed ? RECORD_TRANSFORMED : RECORD;
  await pool.query({ name, text, values: batch.texts(attempts) });
}
