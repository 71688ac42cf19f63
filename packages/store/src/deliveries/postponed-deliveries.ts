import type { Pool } from 'pg';
import { isSameDelivery } from '../events/event-ref.js';
import { opaque } from '../postgres/columns.js';
import type { Planes } from '../postgres/planes.js';
import { notifyDue } from './agents.js';

export const WAIT_REASONS = {
  breaker:
    'The circuit breaker of the endpoint is open: the endpoint fails, and nothing is sent until the next probe.',
  back_off:
    'Its endpoint asked for fewer requests (429, 503 or Retry-After), so nothing is sent to it until the time that it named.',
  rate_limit: 'Its endpoint has a rate limit, and other deliveries come first.',
  lookup:
    'The project has reached its limit of DNS lookups (delivery.lookups_per_project), and the name servers are slow.',
  function:
    'The function of the subscription exceeded its limits with other data, or cannot run now. If it exceeds its limits, correct it; the delivery is then retried.',
  shortage:
    'An agent has run short of files, ports, memory or name servers, so it could open no connection. Its health names the limit.',
  slow: 'Its endpoint answers slowly, and others are served first.',
} as const;

export type WaitReason = keyof typeof WAIT_REASONS;

const CODES = new Map(
  Object.entries(WAIT_REASONS).map(([code, sentence]) => [sentence as string, code as WaitReason]),
);

/** Undefined for other stored reasons. */
export function waitReasonOf(reason: string): WaitReason | undefined {
  return CODES.get(reason);
}

export interface Wait {
  readonly reason: WaitReason;
  readonly dueInMs: number;
  readonly spreadMs: number;
  readonly paceMs: number;
}

const SCANNED = 5_000;

const STILL_WAITING = opaque(`e.status in ('scheduled', 'retry')`);

/*
 * Locks: the postponed rows, by primary key, skipping rows being claimed. Scans event_deliveries_due
 * of one project by next_attempt_at, up to SCANNED rows.
 */
const POSTPONE = `
  with due as materialized (
    select project_id, id, occurred_at, endpoint_id from event_deliveries
    where project_id = $1 and status in ('scheduled', 'retry') and next_attempt_at <= now()
    order by next_attempt_at limit ${SCANNED}
  ),
  waiting as (
    select e.project_id, e.id, e.occurred_at, e.endpoint_id, e.next_attempt_at from event_deliveries e
    join due u on ${isSameDelivery('u', 'e')}
    where u.endpoint_id = any ($2::uuid[]) and ${STILL_WAITING} and e.next_attempt_at <= now()
    for update of e skip locked
  ),
  numbered as (select w.*, row_number() over (partition by endpoint_id order by next_attempt_at) as k from waiting w),
  put_off as materialized (
    select n.*, h.reason, now() + (h.due + n.k * h.pace + random() * h.spread) * interval '1 millisecond' as due_at
    from numbered n join unnest($2::uuid[], $3::float8[], $4::float8[], $5::float8[], $6::text[]) as h(endpoint, due, pace, spread, reason) on h.endpoint = n.endpoint_id
  ),
  d as (
    update event_deliveries d set reason = p.reason, updated_at = now(), next_attempt_at = p.due_at
    from put_off p where ${isSameDelivery('d', 'p')}
    returning d.endpoint_id
  )
  select endpoint_id, count(*)::int as n from d group by endpoint_id`;

/**
 * For unavailable endpoints, so that claims do not scan them again. Returns their number by
 * endpoint.
 */
export async function postponeDue(
  pool: Pool,
  projectId: string,
  waits: readonly { readonly endpointId: string; readonly wait: Wait }[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await pool.query<{ endpoint_id: string; n: number }>({
    name: 'postpone-due',
    text: POSTPONE,
    values: [
      projectId,
      waits.map(({ endpointId }) => endpointId),
      ...(['dueInMs', 'paceMs', 'spreadMs'] as const).map((name) =>
        waits.map(({ wait }) => wait[name]),
      ),
      waits.map(({ wait }) => WAIT_REASONS[wait.reason]),
    ],
  });
  return new Map(rows.map(({ endpoint_id, n }) => [endpoint_id, n]));
}

const SCANNED_AHEAD = 50_000;
/**
 * Per endpoint, due in the same `EXPEDITED_OVER_MS`. The rest keep their times, however many agents
 * expedite them: the endpoint has only just recovered.
 */
const EXPEDITED_MAX = 5_000;
/** Sooner, agents not yet notified would postpone them again. */
const EXPEDITED_AFTER_MS = 1_500;
/** So that they do not delay other endpoints. */
const EXPEDITED_OVER_MS = 5_000;
const SOON_FROM = `now() + ${EXPEDITED_AFTER_MS} * interval '1 millisecond'`;
const SOON_TO = `now() + ${EXPEDITED_AFTER_MS + EXPEDITED_OVER_MS} * interval '1 millisecond'`;

/**
 * Makes an endpoint's next deliveries that wait for one of the reasons due soon, and notifies the
 * agents. Returns how many of its deliveries are then due in the `EXPEDITED_OVER_MS`. Locks the
 * changed rows, skipping locked ones. Scans up to SCANNED_AHEAD rows.
 */
export async function expediteDeliveries(
  { control, data }: Planes,
  { projectId, endpointId }: { readonly projectId: string; readonly endpointId: string },
  reasons: readonly WaitReason[],
): Promise<number> {
  const { rows } = await data.query<{ soon: number; expedited: number }>({
    name: 'expedite-deliveries',
    text: `with ahead as materialized (
             select project_id, id, occurred_at, endpoint_id, reason, next_attempt_at from event_deliveries
             where project_id = $1 and status in ('scheduled', 'retry') and next_attempt_at > ${SOON_FROM} and next_attempt_at < 'infinity'
             order by next_attempt_at limit ${SCANNED_AHEAD}
           ),
           next as materialized (
             select a.*, next_attempt_at <= ${SOON_TO} as is_soon from ahead a
             where endpoint_id = $2 and (next_attempt_at <= ${SOON_TO} or reason = any ($3::text[]))
             order by next_attempt_at limit ${EXPEDITED_MAX}
           ),
           waiting as (
             select e.project_id, e.id, e.occurred_at, e.endpoint_id from event_deliveries e
             join next n on ${isSameDelivery('n', 'e')}
             where not n.is_soon and ${STILL_WAITING} and e.next_attempt_at < 'infinity'
             for update of e skip locked
           ),
           spread as materialized (
             select w.*, now() + (${EXPEDITED_AFTER_MS} + random() * ${EXPEDITED_OVER_MS}) * interval '1 millisecond' as due_at from waiting w
           ),
           d as (
             update event_deliveries d set updated_at = now(), reason = null, next_attempt_at = least(d.next_attempt_at, w.due_at)
             from spread w where ${isSameDelivery('d', 'w')}
             returning 1
           )
           select (select count(*) from next)::int as soon, (select count(*) from d)::int as expedited`,
    values: [projectId, endpointId, reasons.map((reason) => WAIT_REASONS[reason])],
  });
  const { soon, expedited } = rows[0]!;
  if (expedited > 0) await notifyDue(control, [projectId]);
  return soon;
}
