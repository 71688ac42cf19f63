import type pg from 'pg';
import { isId, timeOfId } from '@gateway/core/events';
import type { RoutingOutcome } from '@gateway/core/routing';
import { KV_VERSIONS } from '../kv/versions.js';
import type { Querier } from '../postgres/connection.js';
import { batchOf, opaque, type BatchColumn } from '../postgres/columns.js';
import { dueAt, isSame, REF, REF_COLUMNS, sharesTime, type EventRef } from './event-ref.js';
import { insertMessages, messageTexts, type MessageOfEvents } from './kept-messages.js';
import { DATED_BY_ARRIVAL, NOT_DATED_BY_ARRIVAL } from './message-arrivals.js';
import { FENCED, isHere, NOT_FENCED, REFUSED } from './project-fences.js';
import { insertCountDeltas, finishedDeliveries, finishedEvents } from '../counts/count-deltas.js';
import { isSameKey } from './turns.js';

export type EventStatus = 'pending' | 'processed' | 'failed';
export type MessageType = 'single' | 'fanout' | 'broadcast';

/** As its sender gives it. */
export interface EventContent {
  readonly eventType: string;
  readonly messageType: MessageType;
  readonly endpointId: string | null;
  readonly ownerId: string | null;
  readonly idempotencyKey: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** A JSON array of sentences for the sender, or null. */
  readonly notes: string | null;
  /** JSON text, stored and sent byte for byte. */
  readonly data: string;
}

export interface NewEvent extends EventRef, EventContent {
  readonly sourceId: string | null;
  readonly coordinates: string;
  /** JSON of what else its source says of the message (`storedMessage`). */
  readonly message?: string | null | undefined;
  /** In hex, of the source message. Null if the event was created over the API. */
  readonly digest: string | null;
  /** `pending` ones are routed later, through the create-event queue. */
  status: EventStatus;
  outcome: RoutingOutcome | null;
}

/** The headers may be JSON text, as a stored event has them. */
export type StorableEvent = Omit<NewEvent, 'headers'> & {
  readonly headers: NewEvent['headers'] | string;
};

export interface NewEventDelivery extends EventRef {
  readonly eventId: string;
  readonly endpointId: string;
  readonly subscriptionId: string | null;
  readonly eventType: string;
  readonly sourceId: string | null;
  readonly status: 'scheduled' | 'processing' | 'discarded';
  /** Infinity for a paused endpoint. Used only if `status` is `scheduled`. */
  readonly dueInMs: number;
  readonly reason: string | null;
  /** Null or undefined if it is not ordered. */
  readonly orderKey?: string | null;
  /** The beginning of the key itself, for people. */
  readonly orderText?: string;
}

export interface EventBatch {
  readonly events: readonly StorableEvent[];
  readonly deliveries: readonly NewEventDelivery[];
  /** From sources that keep messages. */
  readonly messages?: readonly MessageOfEvents[];
  /** Claims deliveries created as `processing`. */
  readonly agentId: number;
  readonly idempotencyWindowSeconds: number;
}

const EVENT = batchOf<StorableEvent>([
  ...REF_COLUMNS,
  ['source_id', 'sourceId', 'uuid'],
  ['coordinates', 'coordinates'],
  ['digest', 'digest', (text) => `decode(${text}, 'hex')`],
  ['event_type', 'eventType'],
  ['message_type', 'messageType', 'message_type[]'],
  ['endpoint_id', 'endpointId'],
  ['owner_id', 'ownerId'],
  ['idempotency_key', 'idempotencyKey'],
  ['status', 'status', 'event_status[]'],
  ['outcome', 'outcome'],
  ['headers', 'headers'],
  ['message', 'message'],
  ['notes', 'notes'],
  ['data', 'data'],
]);
const DELIVERY_COLUMNS: readonly BatchColumn<NewEventDelivery>[] = [
  ...REF_COLUMNS,
  ['event_id', 'eventId', 'uuid'],
  ['endpoint_id', 'endpointId', 'uuid'],
  ['subscription_id', 'subscriptionId', 'uuid'],
  ['event_type', 'eventType'],
  ['source_id', 'sourceId', 'uuid'],
  ['status', 'status', 'event_delivery_status[]'],
  ['next_attempt_at', 'dueInMs', (ms) => `case when status = 'scheduled' then ${dueAt(ms)} end`],
  ['reason', 'reason'],
];
const DELIVERY = batchOf(DELIVERY_COLUMNS);
const ROUTED_EVENT = batchOf<RoutedEvent>([
  ...REF_COLUMNS,
  ['status', 'status', 'event_status[]'],
  ['outcome', 'outcome'],
]);

/**
 * For the events in the CTE `e`. The deliveries start at parameter `first`, followed by the id of
 * the claiming agent.
 */
function insertDeliveries(first: number, condition = 'true'): string {
  return `insert into event_deliveries (${DELIVERY.names}, claimed_by)
    select ${DELIVERY.names}, case when status = 'processing' then $${first + DELIVERY.size}::int end
    from (${DELIVERY.select(first)}) d where ${opaque('event_id in (select id from e)')} and ${condition}
    on conflict do nothing`;
}

const ORDERED = batchOf<NewEventDelivery & { readonly position: number }>([
  ...DELIVERY_COLUMNS,
  ['order_key', 'orderKey', 'uuid'],
  ['order_text', 'orderText'],
  ['position', 'position', 'int'],
]);
const ordered = (deliveries: readonly NewEventDelivery[]) =>
  ORDERED.texts(deliveries.map((delivery, position) => ({ ...delivery, position })));

/**
 * As `insertDeliveries`, in CTEs of which `d` returns the inserted rows and `t` those whose turn it
 * is. A key with a turn, or with somebody waiting, gets none here: `advanceKeys` decides later.
 */
function insertOrdered(first: number, condition = 'true'): string {
  const waits = `is_ordered and id not in (select delivery_id from t)`;
  return `n as materialized (
    select *, order_key is not null and status <> 'discarded' as is_ordered from (${ORDERED.select(first)}) d
    where ${opaque('event_id in (select id from e)')} and ${condition}
  ),
  t as (
    insert into ordered_keys (project_id, endpoint_id, order_key, delivery_id, occurred_at)
    select distinct on (project_id, endpoint_id, order_key) project_id, endpoint_id, order_key, id, occurred_at from n
    where is_ordered and not exists (select from ordered_keys k where ${isSameKey('k', 'n')})
      and not exists (select from ordered_deliveries q where ${isSameKey('q', 'n')})
    order by project_id, endpoint_id, order_key, position
    on conflict do nothing
    returning delivery_id
  ),
  places as (
    insert into ordered_deliveries (project_id, endpoint_id, order_key, delivery_id, occurred_at, shown)
    select project_id, endpoint_id, order_key, id, occurred_at, order_text from n where is_ordered order by position
    on conflict do nothing
  ),
  d as (
    insert into event_deliveries (${DELIVERY.names}, order_key, claimed_by)
    select project_id, id, occurred_at, event_id, endpoint_id, subscription_id, event_type, source_id,
           case when ${waits} then 'scheduled' else status end, case when ${waits} then null else next_attempt_at end, reason,
           case when is_ordered then order_key end, case when status = 'processing' and not (${waits}) then $${first + ORDERED.size}::int end
    from n
    on conflict do nothing
    returning project_id, id, endpoint_id, source_id, event_type, status
  )`;
}

/*
 * One statement and one commit per micro-batch. Locks only inserted rows, all keys first and then
 * events in id order (the caller sorts): agents that read the same messages after a rebalance
 * cannot deadlock. Counting the keys makes them come first: a subplan alone would run at the first
 * event with a key, after other events are locked.
 */
function accept({
  isCounted,
  hasMessages,
  isOrdered,
}: Readonly<Record<'isCounted' | 'hasMessages' | 'isOrdered', boolean>>): string {
  const deliveries = EVENT.size + 1;
  const agent = deliveries + (isOrdered ? ORDERED : DELIVERY).size;
  const window = `$${agent + 1}::int`;
  const count = `$${agent + 2}::int`;
  return `
  with u as materialized (${EVENT.select()}),
  ${DATED_BY_ARRIVAL},
  ${FENCED},
  k as (
    insert into idempotency_keys (project_id, key, event_id, expires_at)
    select project_id, idempotency_key, id, now() + ${window} * interval '1 second' from u
    where idempotency_key is not null and ${NOT_FENCED} order by project_id, idempotency_key
    on conflict (project_id, key) do update set event_id = excluded.event_id, expires_at = excluded.expires_at
      where idempotency_keys.expires_at - excluded.expires_at <= make_interval(secs => -${window})
    returning event_id
  ),
  e as (
    insert into events (${EVENT.names})
    select ${EVENT.names}
    from u where (select count(*) from k) >= 0 and case when idempotency_key is null then true else id in (select event_id from k) end
      and ${NOT_DATED_BY_ARRIVAL} and ${NOT_FENCED}
    on conflict do nothing
    returning project_id, id, source_id, status
  ),
  ${isOrdered ? insertOrdered(deliveries) : `d as (${insertDeliveries(deliveries)} ${isCounted ? 'returning project_id, endpoint_id, source_id, event_type, status' : ''})`},
  ${hasMessages ? `m as (${insertMessages(agent + 3)}),` : ''}
  counted as (${insertCountDeltas(finishedEvents('e'), ...(isCounted ? [finishedDeliveries('d')] : []))})
  select (select count(*) from e)::int as accepted, array(select id::text from e where (select count(*) from e) < ${count}) as ids, array(${REFUSED}) as refused${isOrdered ? `, array(select delivery_id::text from t) as turns` : ''}`;
}

/** Most batches have no discarded deliveries, no messages, and no keys. */
const ACCEPT = [false, true].map((isOrdered) =>
  [false, true].map((isCounted) =>
    [false, true].map((hasMessages) => ({
      name: `accept-events${isCounted ? '-discarded' : ''}${hasMessages ? '-messages' : ''}${isOrdered ? '-ordered' : ''}`,
      text: accept({ isCounted, hasMessages, isOrdered }),
    })),
  ),
);

/** The ids of the events of a batch. `readVerdicts` judges the others. */
export interface Accepted {
  readonly created: ReadonlySet<string> | 'all';
  /** A fence refuses these, known or not (`readFences`). */
  readonly refused: ReadonlySet<string>;
  /**
   * The ids of the deliveries whose turn it is. Others with an order key wait, and `advanceKeys`
   * must follow for them. Null if none has a key.
   */
  readonly turns: ReadonlySet<string> | null;
}

/**
 * All or nothing. The events must have distinct ids and idempotency keys. Duplicates, whose id or
 * unexpired key exists, change nothing; a message is stored if one of its events is new.
 */
export async function acceptEvents(client: Querier, batch: EventBatch): Promise<Accepted> {
  const { events, deliveries, messages = [] } = batch;
  const isCounted = deliveries.some(({ status }) => status === 'discarded');
  const hasMessages = messages.length > 0;
  const isOrdered = deliveries.some(({ orderKey }) => orderKey);
  const { rows } = await client.query<{
    accepted: number;
    ids: string[];
    refused: string[];
    turns?: string[];
  }>({
    ...ACCEPT[Number(isOrdered)]![Number(isCounted)]![Number(hasMessages)]!,
    values: [
      ...EVENT.texts(events),
      ...(isOrdered ? ordered(deliveries) : DELIVERY.texts(deliveries)),
      batch.agentId,
      batch.idempotencyWindowSeconds,
      events.length,
      ...(hasMessages ? messageTexts(messages) : []),
    ],
  });
  const row = rows[0];
  return {
    created: row?.accepted === events.length ? 'all' : new Set(row?.ids),
    refused: new Set(row?.refused),
    turns: row?.turns ? new Set(row.turns) : null,
  };
}

export type PendingEvent = EventRef &
  Pick<
    NewEvent,
    | 'sourceId'
    | 'coordinates'
    | 'eventType'
    | 'messageType'
    | 'endpointId'
    | 'ownerId'
    | 'message'
    | 'data'
  > & {
    readonly headers: string;
  };

const PENDING_COLUMNS = `e.project_id as "projectId", e.id, (extract(epoch from e.occurred_at) * 1000)::float8 as "occurredAtMs", e.source_id as "sourceId",
  e.event_type as "eventType", e.message_type as "messageType", e.endpoint_id as "endpointId", e.owner_id as "ownerId", e.coordinates, e.headers, e.message, e.data`;

const PENDING = opaque(`e.status = 'pending'`);

/** No lock. */
export async function readPending(
  pool: pg.Pool,
  refs: readonly EventRef[],
): Promise<PendingEvent[]> {
  const { rows } = await pool.query<PendingEvent>({
    name: 'read-pending',
    text: `select ${PENDING_COLUMNS}
           from (${REF.select()}) u join events e on ${isSame('e', 'u')} where ${PENDING}`,
    values: REF.texts(refs),
  });
  return rows;
}

/**
 * Accepted over `olderThanMs` ago, so their signal must have been lost; oldest first. Scans the
 * partial index of pending events once. No lock.
 */
export async function readStalePending(
  pool: pg.Pool,
  olderThanMs: number,
  limit: number,
  withoutProjects: readonly string[] = [],
): Promise<PendingEvent[]> {
  const { rows } = await pool.query<PendingEvent>({
    name: 'read-forgotten',
    text: `select ${PENDING_COLUMNS} from events e
           where e.status = 'pending' and e.accepted_at <= now() - $1::float8 * interval '1 millisecond'
             and e.project_id <> all ($3::uuid[]) order by e.accepted_at limit $2`,
    values: [olderThanMs, limit, withoutProjects],
  });
  return rows;
}

export interface RoutedEvent extends EventRef {
  readonly status: 'processed' | 'failed';
  readonly outcome: string;
}

/**
 * The CTE `had` selects the endpoints for which the replayed events in the CTE `e` have a delivery,
 * even from a deleted subscription.
 */
const HAD = `had as materialized (
    select h.event_id, h.endpoint_id from e
    join event_deliveries h on h.project_id = e.project_id and h.occurred_at = e.occurred_at and h.event_id = e.id and ${sharesTime('h.id', 'e.id')}
    where e.replayed
  )`;
const UNLESS_DELIVERED = `(event_id, endpoint_id) not in (select event_id, endpoint_id from had)`;

/** A delivery with a key must be new: it takes a place. */
const UNLESS_KNOWN = `not exists (select from event_deliveries h where h.project_id = d.project_id and h.id = d.id and h.occurred_at = d.occurred_at)`;

/*
 * Locks: the events' rows, in the given order. A second agent finds the event no longer pending and
 * creates no deliveries: its config cache can have other subscriptions. Nor does it if the project
 * is on another shard, which has the event or gets it.
 */
const routed = (isOrdered: boolean) => `
  with e as (
    update events e set status = u.status, outcome = u.outcome
    from (${ROUTED_EVENT.select()}) u where ${isSame('e', 'u')} and ${PENDING} and ${isHere('u.project_id')}
    returning e.project_id, e.id, e.occurred_at, e.source_id, e.status, e.replayed
  ),
  ${HAD},
  ${isOrdered ? insertOrdered(ROUTED_EVENT.size + 1, `${UNLESS_DELIVERED} and ${UNLESS_KNOWN}`) : `d as (${insertDeliveries(ROUTED_EVENT.size + 1, UNLESS_DELIVERED)} returning project_id, id, endpoint_id, source_id, event_type, status)`},
  counted as (${insertCountDeltas(finishedEvents('e'), finishedDeliveries('d'))})
  select array(select id::text from d) as ids${isOrdered ? ', array(select delivery_id::text from t) as turns' : ''}`;
const [ROUTED, ROUTED_ORDERED] = [routed(false), routed(true)];

/** The events are pending and must be sorted by id. `added` has the ids of new deliveries. */
export async function recordRoutes(
  pool: pg.Pool,
  {
    events,
    deliveries,
    agentId,
  }: { events: readonly RoutedEvent[]; deliveries: readonly NewEventDelivery[]; agentId: number },
): Promise<{ readonly added: ReadonlySet<string>; readonly turns: Accepted['turns'] }> {
  const isOrdered = deliveries.some(({ orderKey }) => orderKey);
  const { rows } = await pool.query<{ ids: string[]; turns?: string[] }>({
    name: isOrdered ? 'record-ordered-routes' : 'record-routes',
    text: isOrdered ? ROUTED_ORDERED : ROUTED,
    values: [
      ...ROUTED_EVENT.texts(events),
      ...(isOrdered ? ordered(deliveries) : DELIVERY.texts(deliveries)),
      agentId,
    ],
  });
  const turns = rows[0]?.turns;
  return { added: new Set(rows[0]?.ids), turns: turns ? new Set(turns) : null };
}

/** Early releases omit the version. */
export function encodeSignal({ projectId, id }: Pick<EventRef, 'projectId' | 'id'>): string {
  return `${projectId} ${id} ${KV_VERSIONS.signal}`;
}

/** Null if this release cannot read it. */
export function decodeSignal(text: string): EventRef | null {
  const [projectId, id, version = '1'] = text.split(' ');
  return version === String(KV_VERSIONS.signal) && projectId && id && isId(projectId) && isId(id)
    ? { projectId, id, occurredAtMs: timeOfId(id) }
    : null;
}
