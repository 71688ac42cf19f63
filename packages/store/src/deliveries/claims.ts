import type pg from 'pg';
import { batchOf, clean, opaque } from '../postgres/columns.js';
import { insertCountDeltas, finishedDeliveries } from '../counts/count-deltas.js';
import {
  dueAt,
  isSame,
  isSameDelivery,
  REF,
  REF_COLUMNS,
  sharesTime,
  type EventRef,
} from '../events/event-ref.js';
import { isHere } from '../events/project-fences.js';
import { WAIT_REASONS, type WaitReason } from './postponed-deliveries.js';

export type EventDeliveryStatus =
  'scheduled' | 'processing' | 'retry' | 'success' | 'failure' | 'discarded';

export interface ClaimedDelivery extends EventRef {
  readonly eventId: string;
  readonly endpointId: string;
  /** Null if the event named its endpoints. */
  readonly subscriptionId: string | null;
  readonly attempts: number;
  readonly eventType: string;
  readonly sourceId: string | null;
  /** Null if the previous attempt was not traced. */
  readonly traceparent: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The event's data or, if `isTransformed`, the output of the subscription's function. */
  readonly body: Buffer;
  readonly isTransformed: boolean;
  /** Null if it is not ordered. */
  readonly orderKey: string | null;
  readonly agentId: number;
}

/*
 * Claims rows of `due` for the agent $1. Locks them, skipping rows being claimed, then claims the
 * first that fit in `limit` and `bytes`; Postgres knows the length of a large body without reading
 * it. One row beyond the limit tells whether there are more. Only the primary key of events has the
 * order of the range: on a new day, without statistics, another index of the project would seem as
 * good, and each lookup would read all events of the project.
 */
const claiming = (
  due: (limit: string) => string,
  { limit, bytes }: { readonly limit: string; readonly bytes: string },
) => `
  with due as (${due(`limit ${limit}::int + 1`)}),
  sized as (
    select d.*, e.*, coalesce(sum(e.header_bytes + octet_length(coalesce(d.transformed_data, e.data))) over (order by next_attempt_at, id rows between unbounded preceding and 1 preceding), 0) < ${bytes}::float8
             and row_number() over (order by next_attempt_at, id) <= ${limit}::int as fits
    from due d left join lateral (
      select event_type, source_id, headers, data, octet_length(headers) as header_bytes from events e
      where e.project_id = d.project_id and e.id = d.event_id and e.occurred_at >= d.occurred_at and e.occurred_at <= d.occurred_at order by e.occurred_at limit 1
    ) e on true
  ),
  claimed as (
    update event_deliveries d set status = 'processing', claimed_by = $1, next_attempt_at = null, reason = null, updated_at = now()
    from sized s where s.fits and ${isSame('d', 's')}
    returning d.project_id, d.id, d.occurred_at, d.event_id, d.endpoint_id, d.subscription_id, d.attempts, d.traceparent, d.order_key
  )
  select w.scanned_to as "scannedTo", w.is_more as "isMore", c.project_id as "projectId", c.id, (extract(epoch from c.occurred_at) * 1000)::float8 as "occurredAtMs",
         c.event_id as "eventId", c.endpoint_id as "endpointId", c.subscription_id as "subscriptionId", c.attempts, c.traceparent, c.order_key as "orderKey", s.event_type as "eventType", s.source_id as "sourceId",
         s.headers, coalesce(s.transformed_data, s.data) as data, s.transformed_data is not null as "isTransformed"
  from (
    select (case when is_more then last else now() end - interval '1 second')::text as scanned_to, is_more
    from (select not coalesce(bool_and(fits), true) as is_more, max(next_attempt_at) filter (where fits) as last from sized) f
  ) w
  left join (claimed c join sized s on s.id = c.id and s.data is not null) on true`;

const DUE = `d.project_id, d.id, d.occurred_at, d.next_attempt_at, d.event_id, d.transformed_data`;

/*
 * The scan of event_deliveries_due follows next_attempt_at within one project up to the limit; the
 * project is fixed because a sharded Postgres rejects a locking claim across shards. A project that
 * moved away is sent from its new shard. `scannedTo` is one second early: writers set
 * next_attempt_at before their commit.
 */
const CLAIM = claiming(
  (limit) => `select ${DUE} from event_deliveries d
    where project_id = $2 and status in ('scheduled', 'retry') and status = any ($3::event_delivery_status[])
      and next_attempt_at >= $6::timestamptz and next_attempt_at <= now() and endpoint_id <> all ($4::uuid[]) and (select ${isHere('$2::uuid')})
    order by next_attempt_at ${limit} for update of d skip locked`,
  { limit: '$5', bytes: '$7' },
);

/*
 * The inner limit makes the planner read the range of ids for each event. Without it, the plan of a
 * new day, which has no statistics, reads the whole day for each claim. Rows are locked one by one
 * until the outer limit, in the order of the events.
 */
const CLAIM_EVENTS = claiming(
  (limit) => `select d.* from (${REF.select(5)}) u
    cross join lateral (
      select ${DUE} from event_deliveries d
      where d.project_id = u.project_id and d.occurred_at = u.occurred_at and d.event_id = u.id and ${sharesTime('d.id', 'u.id')}
        and ${opaque(`d.status = 'scheduled'`)} and d.next_attempt_at <= now() and d.endpoint_id <> all ($2::uuid[])
      ${limit} for update skip locked
    ) d where ${isHere('u.project_id')} ${limit}`,
  { limit: '$3', bytes: '$4' },
);

interface Claim {
  readonly projectId: string;
  readonly statuses: readonly ('scheduled' | 'retry')[];
  readonly exceptEndpoints: readonly string[];
  readonly limit: number;
  /** Headers and bodies. The first delivery is claimed even if larger. */
  readonly bytes?: number;
  readonly from?: string | undefined;
}

/**
 * Oldest first. Due deliveries left before `scannedTo` belong to excluded endpoints. If `isMore`,
 * later ones are due too.
 */
export async function claimDue(
  pool: pg.Pool,
  agentId: number,
  { projectId, statuses, exceptEndpoints, limit, bytes = Infinity, from = '-infinity' }: Claim,
): Promise<{
  readonly claimed: ClaimedDelivery[];
  readonly scannedTo: string;
  readonly isMore: boolean;
}> {
  return claim(pool, agentId, {
    name: 'claim-due',
    text: CLAIM,
    values: [projectId, statuses, exceptEndpoints, limit, from, bytes],
  });
}

/** First attempts. If `isMore`, more are due. */
export async function claimEvents(
  pool: pg.Pool,
  agentId: number,
  {
    refs,
    exceptEndpoints,
    limit,
    bytes,
  }: Required<Pick<Claim, 'exceptEndpoints' | 'limit' | 'bytes'>> & {
    readonly refs: readonly EventRef[];
  },
): Promise<{ readonly claimed: ClaimedDelivery[]; readonly isMore: boolean }> {
  return claim(pool, agentId, {
    name: 'claim-events',
    text: CLAIM_EVENTS,
    values: [exceptEndpoints, limit, bytes, ...REF.texts(refs)],
  });
}

type ClaimedRow = { readonly scannedTo: string; readonly isMore: boolean } & (
  | (Omit<ClaimedDelivery, 'headers' | 'body' | 'agentId'> & {
      readonly headers: string;
      readonly data: string;
    })
  | { readonly projectId: null; readonly headers: string; readonly data: string }
);

async function claim(
  pool: pg.Pool,
  agentId: number,
  { values, ...query }: { name: string; text: string; values: unknown[] },
): Promise<{ claimed: ClaimedDelivery[]; scannedTo: string; isMore: boolean }> {
  // Without deliveries, there is one row with the cursor and `isMore`.
  const { rows } = await pool.query<ClaimedRow>({ ...query, values: [agentId, ...values] });
  const claimed: ClaimedDelivery[] = [];
  for (const { scannedTo: _, isMore: __, headers, data, ...delivery } of rows)
    if (delivery.projectId !== null)
      claimed.push({
        ...delivery,
        headers: JSON.parse(headers) as Record<string, string>,
        body: Buffer.from(data),
        agentId,
      });
  const { scannedTo, isMore } = rows[0]!;
  return { claimed, scannedTo, isMore };
}

export interface DeliveryRef extends EventRef {
  readonly endpointId: string;
}

const RELEASED = batchOf<DeliveryRef & { readonly dueInMs: number | null }>([
  ...REF_COLUMNS,
  ['endpoint_id', 'endpointId', 'uuid'],
  ['due_at', 'dueInMs', dueAt],
]);

/**
 * Over `olderThanMs` ago. Scans event_deliveries_claimed, which has only deliveries in flight. No
 * lock.
 */
export async function readClaimed(
  pool: pg.Pool,
  agentId: number,
  olderThanMs: number,
): Promise<DeliveryRef[]> {
  const { rows } = await pool.query<DeliveryRef>({
    name: 'read-claimed',
    text: `select project_id as "projectId", id, endpoint_id as "endpointId", (extract(epoch from occurred_at) * 1000)::float8 as "occurredAtMs"
           from event_deliveries where status = 'processing' and claimed_by = $1 and updated_at <= now() - $2::float8 * interval '1 millisecond'`,
    values: [agentId, olderThanMs],
  });
  return rows;
}

/** Discarded, or due after `dueInMs` plus up to `spreadMs` of jitter. */
export type Release =
  | {
      readonly to: 'due';
      readonly dueInMs: number;
      readonly spreadMs?: number;
      readonly reason?: WaitReason;
    }
  | { readonly to: 'discarded'; readonly reason: string };

/**
 * Records no attempt. `dueInMs` is Infinity for a paused endpoint. Locks the rows by primary key.
 */
export async function releaseDeliveries(
  pool: pg.Pool,
  agentId: number,
  deliveries: readonly DeliveryRef[],
  how: Release,
): Promise<void> {
  const dueInMs = () =>
    how.to === 'due' ? how.dueInMs + Math.random() * (how.spreadMs ?? 0) : null;
  await pool.query({
    name: 'return-deliveries',
    text: `with d as (
           update event_deliveries d set claimed_by = null, next_attempt_at = u.due_at, reason = $7::text, updated_at = now(),
             status = case when $8::boolean then 'discarded'::event_delivery_status when d.attempts = 0 then 'scheduled' else 'retry' end
           from (${RELEASED.select()}) u where ${isSameDelivery('d', 'u')} and d.claimed_by = $6
           returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.status)
           ${insertCountDeltas(finishedDeliveries('d'))}`,
    values: [
      ...RELEASED.texts(deliveries.map((delivery) => ({ ...delivery, dueInMs: dueInMs() }))),
      agentId,
      how.to === 'due' ? (how.reason ? WAIT_REASONS[how.reason] : null) : clean(how.reason),
      how.to === 'discarded',
    ],
  });
}

/**
 * Deletes agents with an expired lease and makes their deliveries due; with `orphans`, also those
 * of agents without a row. Returns their number. Locks these rows. Scans event_deliveries_claimed.
 */
export async function recoverDeliveries(
  pool: pg.Pool,
  { orphans }: { orphans: boolean },
): Promise<number> {
  const { rowCount } = await pool.query({
    name: orphans ? 'recover-orphans' : 'recover-deliveries',
    text: `with dead as (delete from agents where expires_at <= now() returning id)
           update event_deliveries d set status = case when d.attempts = 0 then 'scheduled'::event_delivery_status else 'retry' end, claimed_by = null,
             next_attempt_at = now(), recovered = d.recovered + 1, updated_at = now()
           ${orphans ? `where d.status = 'processing' and (d.claimed_by in (select id from dead) or not exists (select from agents a where a.id = d.claimed_by))` : `from dead where d.status = 'processing' and d.claimed_by = dead.id`}`,
  });
  return rowCount ?? 0;
}
