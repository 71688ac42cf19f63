import { isSameDelivery } from './event-ref.js';
import { isHere } from './project-fences.js';
import { opaque } from '../postgres/columns.js';

/*
 * Deliveries with an order key stand in `ordered_deliveries`, by `seq`. A row of `ordered_keys` is
 * the turn of a key: its primary key makes it one delivery at a time. Only that delivery is due or
 * claimed; the others are scheduled without a time, so that no claim reads them.
 *
 * - The statement that accepts deliveries takes the turn of a key that has none and nobody waiting.
 * - The statement that ends a delivery passes its turn to the next one that it sees, or drops it.
 * - A delivery that neither of them saw was committed meanwhile. Whoever accepted deliveries, or
 *   dropped a turn, therefore calls `advanceKeys` afterwards: the later of the two sees the other.
 *
 * No statement waits for the lock of a key while another one accepts deliveries with it.
 */

export interface OrderedKey {
  readonly projectId: string;
  readonly endpointId: string;
  /** The first half of a digest of the key. */
  readonly orderKey: string;
}

export const isSameKey = (row: string, other: string): string =>
  `${row}.project_id = ${other}.project_id and ${row}.endpoint_id = ${other}.endpoint_id and ${row}.order_key = ${other}.order_key`;

/** The delivery of a key that is sent next. One probe of the primary key. */
export const firstOf = (key: string, without = 'true'): string =>
  `select q.delivery_id, q.occurred_at from ordered_deliveries q where ${isSameKey('q', key)} and ${without} order by q.seq limit 1`;

/** Makes the deliveries due to which the CTE `moved` gave a turn. */
export const TURNED = `turned as (
    update event_deliveries d set next_attempt_at = now(), updated_at = now()
    from (select project_id, endpoint_id, delivery_id as id, occurred_at from moved) m
    where ${isSameDelivery('d', 'm')} and ${opaque(`d.status in ('scheduled', 'retry')`)} and d.next_attempt_at is null
    returning d.project_id, d.id, d.event_id
  )`;

/**
 * Defines CTEs that pass the turns of the finished deliveries in the CTE `over`, which has the
 * columns of a key and `id`. On a shard that the project leaves, turns stay.
 */
export const PASSED = `gone as (
    delete from ordered_deliveries q using over o where q.project_id = o.project_id and q.delivery_id = o.id
  ),
  followed as materialized (
    select o.project_id, o.endpoint_id, o.order_key, o.id, n.delivery_id, n.occurred_at
    from over o left join lateral (${firstOf('o', 'q.delivery_id not in (select id from over)')}) n on true
  ),
  moved as (
    update ordered_keys k set delivery_id = n.delivery_id, occurred_at = n.occurred_at, since = now(), parked_at = null
    from followed n where ${isSameKey('k', 'n')} and k.delivery_id = n.id and n.delivery_id is not null and ${isHere('n.project_id')}
    returning k.project_id, k.endpoint_id, k.order_key, k.delivery_id, k.occurred_at
  ),
  dropped as (
    delete from ordered_keys k using followed n where ${isSameKey('k', 'n')} and k.delivery_id = n.id and n.delivery_id is null
    returning k.project_id, k.endpoint_id, k.order_key
  ),
  ${TURNED}`;

/** The rows of the result: a delivery that is due now, or null for a key to look at again. */
export const TURNS = `select m.project_id as "projectId", m.endpoint_id as "endpointId", m.order_key as "orderKey", t.event_id as "eventId"
  from moved m left join turned t on t.project_id = m.project_id and t.id = m.delivery_id`;
export const DROPPED = `union all select project_id, endpoint_id, order_key, null from dropped`;

export interface KeyTurn extends OrderedKey {
  /** The event of the delivery that is due now. Null if none of the key could be made due. */
  readonly eventId: string | null;
}

/**
 * Added to the time at which a statement makes the delivery `d` due again: null for one with a key
 * and without a time, which waits for its turn, or takes a place behind those that wait
 * (`placesAgain`). Citus refuses `now()` within a case.
 */
export const UNLESS_WAITING =
  "case when d.order_key is null or d.next_attempt_at is not null then interval '0' end";

/** `repairKeys` must follow. One that has its place, such as a parked one, keeps it. */
export const placesAgain = (from: string): string => `placed as (
    insert into ordered_deliveries (project_id, endpoint_id, order_key, delivery_id, occurred_at)
    select project_id, endpoint_id, order_key, id, occurred_at from ${from} where order_key is not null and next_attempt_at is null order by id
    on conflict do nothing
  )`;
