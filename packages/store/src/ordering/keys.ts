import type { Pool } from 'pg';
import { finishedDeliveries, insertCountDeltas } from '../counts/count-deltas.js';
import { isSameDelivery } from '../events/event-ref.js';
import { clean, opaque } from '../postgres/columns.js';
import {
  isSameKey,
  PASSED,
  TURNS,
  DROPPED,
  type OrderedKey,
  type KeyTurn,
} from '../events/turns.js';
import { repairKeys } from './settle-keys.js';

export interface KeyRow {
  readonly endpoint_id: string;
  readonly order_key: string;
  /** Its beginning. Null if only its digest is known. */
  readonly key: string | null;
  /** The delivery with the turn. */
  readonly event_delivery_id: string;
  /** Null if retention has deleted it. */
  readonly event_id: string | null;
  readonly since: Date;
  readonly parked_at: Date | null;
  /** Why the delivery was parked, or why it waits. */
  readonly reason: string | null;
  /** Up to `DEPTH_MAX`, with the one whose turn it is. */
  readonly depth: number;
}

export const DEPTH_MAX = 10_000;
const LISTED = 1_000;

const KEY_ROW = `k.endpoint_id, k.order_key, q.shown as key, k.delivery_id as event_delivery_id, d.event_id, k.since, k.parked_at, d.reason,
  (select count(*) from (select from ordered_deliveries o where ${isSameKey('o', 'k')} limit ${DEPTH_MAX}) o)::int as depth`;
const KEY_JOINS = `left join ordered_deliveries q on q.project_id = k.project_id and q.delivery_id = k.delivery_id
  left join event_deliveries d on d.project_id = k.project_id and d.id = k.delivery_id and d.occurred_at = k.occurred_at and d.endpoint_id = k.endpoint_id`;

/** Parked keys, the oldest first, at most a thousand. Reads `DEPTH_MAX` index entries of each. */
export async function listParkedKeys(
  pool: Pool,
  projectId: string,
  endpointIds?: readonly string[],
  limit = LISTED,
): Promise<KeyRow[]> {
  const { rows } = await pool.query<KeyRow>({
    name: 'list-parked-keys',
    text: `select ${KEY_ROW} from (
             select * from ordered_keys k where k.project_id = $1 and k.parked_at is not null and ($2::uuid[] is null or k.endpoint_id = any ($2)) order by k.parked_at limit $3
           ) k ${KEY_JOINS} order by k.parked_at`,
    values: [projectId, endpointIds ?? null, Math.min(limit, LISTED)],
  });
  return rows;
}

/** Undefined without an unfinished delivery. */
export async function findKey(
  pool: Pool,
  { projectId, endpointId, orderKey }: OrderedKey,
): Promise<KeyRow | undefined> {
  const { rows } = await pool.query<KeyRow>({
    name: 'find-key',
    text: `select ${KEY_ROW} from ordered_keys k ${KEY_JOINS} where k.project_id = $1 and k.endpoint_id = $2 and k.order_key = $3`,
    values: [projectId, endpointId, orderKey],
  });
  return rows[0];
}

/* Locks the delivery first, as recording its attempt does, and then its turn. */
const PARK = `
  with late as materialized (
    select k.* from ordered_keys k
    where k.project_id = $1 and k.endpoint_id = $2 and k.parked_at is null and k.since < now() - $3::int * interval '1 second'
    order by k.order_key limit ${LISTED}
  ),
  d as (
    update event_deliveries d set status = 'failure', next_attempt_at = null, reason = $4, updated_at = now()
    from (select project_id, endpoint_id, delivery_id as id, occurred_at from late) m
    where ${isSameDelivery('d', 'm')} and ${opaque(`d.status = 'retry'`)} and d.next_attempt_at is not null
    returning d.project_id, d.id, d.endpoint_id, d.source_id, d.event_type, d.status, d.order_key
  ),
  counted as (${insertCountDeltas(finishedDeliveries('d'))})
  update ordered_keys k set parked_at = now() from d where ${isSameKey('k', 'd')} and k.delivery_id = d.id`;

/** Parks keys of an endpoint whose delivery has been retried for so long. Returns their number. */
export async function parkOverdue(
  pool: Pool,
  { projectId, endpointId }: Omit<OrderedKey, 'orderKey'>,
  seconds: number,
): Promise<number> {
  const { rowCount } = await pool.query({
    name: 'park-overdue',
    text: PARK,
    values: [
      projectId,
      endpointId,
      seconds,
      `Its key was parked after ${seconds} s of retries (ordering_park_after_seconds).`,
    ],
  });
  return rowCount ?? 0;
}

const ONE = `k.project_id = $1 and k.endpoint_id = $2 and k.order_key = $3`;

/*
 * The first delivery of a key, unless an agent has claimed it. Locks its turn and then the delivery,
 * as the statement that parks it does not: it has the delivery first, and waits for nobody.
 */
const GIVE_UP = `
  with k as materialized (select k.* from ordered_keys k where ${ONE}),
  d as (
    update event_deliveries d set status = 'discarded', next_attempt_at = null, reason = $4, updated_at = now()
    from (select project_id, endpoint_id, delivery_id as id, occurred_at from k) m
    where ${isSameDelivery('d', 'm')} and ${opaque(`d.status in ('scheduled', 'retry')`)}
    returning d.project_id, d.id, d.endpoint_id, d.source_id, d.event_type, d.status
  ),
  counted as (${insertCountDeltas(finishedDeliveries('d'))}),
  over as materialized (
    select project_id, endpoint_id, order_key, delivery_id as id from k where parked_at is not null or delivery_id in (select id from d)
  ),
  ${PASSED}
  ${TURNS}
  ${DROPPED}
  union all select project_id, endpoint_id, order_key, null from over`;

/**
 * Gives up the delivery whose turn it is. A parked one stays `failure`; one that waits for a retry
 * becomes `discarded`. Undefined if an agent sends it now, or nothing of the key is left.
 */
export async function skipDelivery(
  pool: Pool,
  key: OrderedKey,
  reason: string,
): Promise<KeyTurn[] | undefined> {
  const { rows } = await pool.query<KeyTurn>({
    name: 'skip-delivery',
    text: GIVE_UP,
    values: [key.projectId, key.endpointId, key.orderKey, clean(reason)],
  });
  if (rows.length === 0) return undefined;
  const due = rows.filter(({ eventId }) => eventId !== null);
  return due.length > 0 ? due : repairKeys(pool, [key]);
}

const BATCH = 5_000;

/* Discards deliveries behind the first. Locks them, and their places. */
const DISCARD_WAITING = `
  with w as materialized (
    select q.* from ordered_deliveries q
    where q.project_id = $1 and q.endpoint_id = $2 and q.order_key = $3
      and q.delivery_id not in (select k.delivery_id from ordered_keys k where ${ONE})
    order by q.seq limit ${BATCH}
  ),
  d as (
    update event_deliveries d set status = 'discarded', next_attempt_at = null, reason = $4, updated_at = now()
    from (select project_id, endpoint_id, delivery_id as id, occurred_at from w) m
    where ${isSameDelivery('d', 'm')} and ${opaque(`d.status in ('scheduled', 'retry')`)} and d.next_attempt_at is null
    returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.status
  ),
  counted as (${insertCountDeltas(finishedDeliveries('d'))}),
  gone as (delete from ordered_deliveries q using w where q.project_id = w.project_id and q.delivery_id = w.delivery_id)
  select (select count(*) from w)::int as found, (select count(*) from d)::int as discarded`;

/** Returns the number of deliveries, with the one whose turn it was if it was not being sent. */
export async function discardKey(
  pool: Pool,
  key: OrderedKey,
  reason: string,
): Promise<{ readonly discarded: number; readonly due: readonly KeyTurn[] }> {
  let discarded = 0;
  for (let found = BATCH; found === BATCH;) {
    const { rows } = await pool.query<{ found: number; discarded: number }>({
      name: 'discard-waiting',
      text: DISCARD_WAITING,
      values: [key.projectId, key.endpointId, key.orderKey, clean(reason)],
    });
    found = rows[0]!.found;
    discarded += rows[0]!.discarded;
  }
  const due = await skipDelivery(pool, key, reason);
  return { discarded: discarded + (due ? 1 : 0), due: due ?? [] };
}
