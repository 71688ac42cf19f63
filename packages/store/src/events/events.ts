import type pg from 'pg';
import { isId, timeOfId } from '@gateway/core/events';
import { KV_VERSIONS } from '../kv/versions.js';
import type { Querier } from '../postgres/connection.js';
import { batchRows, batchTexts } from '../postgres/columns.js';
import { DUE_AT, membersOf, OCCURRED_AT, REF, type EventRef } from './event-ref.js';
import { insertMessages, messageTexts, type MessageOfEvents } from './kept-messages.js';
import { DATED_BY_ARRIVAL, NOT_DATED_BY_ARRIVAL } from './message-arrivals.js';
import { FENCED, isHere, NOT_FENCED, REFUSED } from './project-fences.js';
import { insertCountDeltas, finishedDeliveries, finishedEvents } from '../counts/count-deltas.js';

export type EventStatus = 'pending' | 'processed' | 'failed';
export type MessageType = 'single' | 'fanout' | 'broadcast';

export interface NewEvent extends EventRef {
  readonly sourceId: string | null;
  readonly coordinates: string;
  /** Hex digest of the source message. Null if the event was created over the API. */
  readonly digest: string | null;
  readonly eventType: string;
  readonly messageType: MessageType;
  readonly endpointId: string | null;
  readonly ownerId: string | null;
  readonly idempotencyKey: string | null;
  /** `pending` events are routed later, through the create-event queue. */
  readonly status: EventStatus;
  readonly outcome: string | null;
  readonly headers: string;
  /** A JSON array of sentences for the sender. Null if there are none. */
  readonly notes: string | null;
  /** JSON text, stored unchanged. */
  readonly data: string;
}

export interface NewEventDelivery extends EventRef {
  readonly eventId: string;
  readonly endpointId: string;
  readonly subscriptionId: string | null;
  /** Event type and source are copied from the event. */
  readonly eventType: string;
  readonly sourceId: string | null;
  readonly status: 'scheduled' | 'processing' | 'discarded';
  /** Infinity while the endpoint is paused. Used only if `status` is `scheduled`. */
  readonly dueInMs: number;
  readonly reason: string | null;
}

export interface EventBatch {
  readonly events: readonly NewEvent[];
  readonly deliveries: readonly NewEventDelivery[];
  /** From sources that keep messages. */
  readonly messages?: readonly MessageOfEvents[];
  /** Claims deliveries created as `processing`. */
  readonly agentId: number;
  readonly idempotencyWindowSeconds: number;
}

const EVENT = membersOf<NewEvent>(
  'projectId id occurredAtMs sourceId coordinates digest eventType messageType endpointId ownerId idempotencyKey status outcome headers notes data',
);
const DELIVERY = membersOf<NewEventDelivery>(
  'projectId id occurredAtMs eventId endpointId subscriptionId eventType sourceId status dueInMs reason',
);
const ROUTED_EVENT = membersOf<RoutedEvent>('projectId id occurredAtMs status outcome');

/**
 * For the events in the CTE `e`. The deliveries start at parameter `first`, followed by the id of
 * the claiming agent.
 */
function insertDeliveries(first: number, condition = 'true'): string {
  return `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, subscription_id, event_type, source_id, status, claimed_by, next_attempt_at, reason)
    select projectId::uuid, id::uuid, ${OCCURRED_AT}, eventId::uuid, endpointId::uuid, subscriptionId::uuid, eventType, sourceId::uuid, status,
           case when status = 'processing' then $${first + DELIVERY.length}::int end, case when status = 'scheduled' then ${DUE_AT} end, reason
    from ${batchRows(DELIVERY, first, { status: 'event_delivery_status' })}
    where case when eventId::uuid in (select id from e) then true else false end and ${condition}
    on conflict do nothing`;
}

/** Without messages. */
const PARAMETERS = EVENT.length + DELIVERY.length + 3;

/*
 * One statement and one commit per micro-batch. Locks only inserted rows, all keys first and then
 * events in id order (the caller sorts): agents that read the same messages after a rebalance
 * cannot deadlock. Counting the keys makes them come first: a subplan alone would run at the first
 * event with a key, after other events are locked. `case when x in (select ...)` forces hashed
 * subplans: joins would be nested loops on these connections, quadratic in the batch.
 */
const accept = (counted: { readonly deliveries: boolean }, has: { readonly messages: boolean }) => `
  with u as materialized (
    select projectId::uuid as project, id::uuid as message, ${OCCURRED_AT} as occurred_at, sourceId::uuid as source, coordinates, decode(digest, 'hex') as digest, eventType as type,
           messageType as message_type, endpointId as endpoint, ownerId as owner, idempotencyKey as key, status, outcome, headers, notes, data
    from ${batchRows(EVENT, 1, { messageType: 'message_type', status: 'event_status' })}
  ),
  ${DATED_BY_ARRIVAL},
  ${FENCED},
  k as (
    insert into idempotency_keys (project_id, key, event_id, expires_at)
    select project, key, message, now() + $29::int * interval '1 second' from u where key is not null and ${NOT_FENCED} order by project, key
    on conflict (project_id, key) do update set event_id = excluded.event_id, expires_at = excluded.expires_at
      where idempotency_keys.expires_at - excluded.expires_at <= make_interval(secs => -$29::int)
    returning event_id
  ),
  e as (
    insert into events (project_id, id, occurred_at, source_id, coordinates, digest, event_type, message_type, endpoint_id, owner_id, idempotency_key, status, outcome, headers, notes, data)
    select project, message, occurred_at, source, coordinates, digest, type, message_type, endpoint, owner, key, status, outcome, headers, notes, data
    from u where (select count(*) from k) >= 0 and case when key is null then true else message in (select event_id from k) end
      and ${NOT_DATED_BY_ARRIVAL} and ${NOT_FENCED}
    on conflict do nothing
    returning project_id, id, source_id, status
  ),
  d as (${insertDeliveries(EVENT.length + 1)} ${counted.deliveries ? 'returning project_id, endpoint_id, source_id, event_type, status' : ''}),
  ${has.messages ? `m as (${insertMessages(PARAMETERS + 1)}),` : ''}
  counted as (${insertCountDeltas(finishedEvents('e'), ...(counted.deliveries ? [finishedDeliveries('d')] : []))})
  select (select count(*) from e)::int as accepted, array(select id::text from e where (select count(*) from e) < $30::int) as ids, array(${REFUSED}) as refused`;

/**
 * Separate statements, because most batches have no discarded deliveries to count and no messages
 * to keep.
 */
const [ACCEPT, ACCEPT_MESSAGES, ACCEPT_DISCARDED, ACCEPT_DISCARDED_MESSAGES] = [
  { name: 'accept-events', text: accept({ deliveries: false }, { messages: false }) },
  { name: 'accept-events-messages', text: accept({ deliveries: false }, { messages: true }) },
  { name: 'accept-events-discarded', text: accept({ deliveries: true }, { messages: false }) },
  {
    name: 'accept-events-discarded-messages',
    text: accept({ deliveries: true }, { messages: true }),
  },
] as const;

/** The ids of the events of a batch. `readVerdicts` judges the others. */
export interface Accepted {
  readonly created: ReadonlySet<string> | 'all';
  /** A fence refuses these, known or not (`readFences`). */
  readonly refused: ReadonlySet<string>;
}

/**
 * All or nothing. The events must have distinct ids and idempotency keys. Duplicates, whose id or
 * unexpired key already exists, change nothing, and a message is stored if one of its events is
 * new.
 */
export async function acceptEvents(client: Querier, batch: EventBatch): Promise<Accepted> {
  const { events, deliveries, messages = [] } = batch;
  const isDiscarded = deliveries.some(({ status }) => status === 'discarded');
  const keeps = messages.length > 0;
  const { rows } = await client.query<{ accepted: number; ids: string[]; refused: string[] }>({
    ...(keeps
      ? isDiscarded
        ? ACCEPT_DISCARDED_MESSAGES
        : ACCEPT_MESSAGES
      : isDiscarded
        ? ACCEPT_DISCARDED
        : ACCEPT),
    values: [
      ...batchTexts(events, EVENT),
      ...batchTexts(deliveries, DELIVERY),
      batch.agentId,
      batch.idempotencyWindowSeconds,
      events.length,
      ...(keeps ? messageTexts(messages) : []),
    ],
  });
  const row = rows[0];
  return {
    created: row?.accepted === events.length ? 'all' : new Set(row?.ids),
    refused: new Set(row?.refused),
  };
}

export type PendingEvent = EventRef &
  Pick<
    NewEvent,
    'sourceId' | 'eventType' | 'messageType' | 'endpointId' | 'ownerId' | 'headers' | 'data'
  >;

const PENDING_COLUMNS = `e.project_id as "projectId", e.id, (extract(epoch from e.occurred_at) * 1000)::float8 as "occurredAtMs", e.source_id as "sourceId",
  e.event_type as "eventType", e.message_type as "messageType", e.endpoint_id as "endpointId", e.owner_id as "ownerId", e.headers, e.data`;

/** Compares the status within a `case`, so that no plan scans the index of all pending events. */
const PENDING = `case when e.status = 'pending' then true else false end`;

/** No lock. */
export async function readPending(
  pool: pg.Pool,
  refs: readonly EventRef[],
): Promise<PendingEvent[]> {
  const { rows } = await pool.query<PendingEvent>({
    name: 'read-pending',
    text: `select ${PENDING_COLUMNS}
           from (select projectId::uuid as project, id::uuid as event, ${OCCURRED_AT} as occurred_at from ${batchRows(REF)}) u
           join events e on e.project_id = u.project and e.id = u.event and e.occurred_at = u.occurred_at
           where ${PENDING}`,
    values: batchTexts(refs, REF),
  });
  return rows;
}

/**
 * Accepted over `olderThanMs` ago, so their signal must have been lost; oldest first. Scans the
 * partial index of pending events once, without a lock.
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
 * even from a deleted subscription. An event's deliveries share its timestamp: a short range of the
 * primary key.
 */
const HAD = `had as materialized (
    select h.event_id, h.endpoint_id from e
    join event_deliveries h on h.project_id = e.project_id and h.occurred_at = e.occurred_at and h.event_id = e.id
      and h.id between (left(e.id::text, 13) || '-0000-0000-000000000000')::uuid and (left(e.id::text, 13) || '-ffff-ffff-ffffffffffff')::uuid
    where e.replayed
  )`;
const UNLESS_DELIVERED = `(eventId::uuid, endpointId::uuid) not in (select event_id, endpoint_id from had)`;

/*
 * Locks: the events' rows, in the given order. A second agent finds the event no longer pending and
 * creates no deliveries: its config cache can have other subscriptions. Nor does it if the project
 * is on another shard, which has the event or gets it.
 */
const ROUTED = `
  with e as (
    update events e set status = u.status, outcome = u.outcome
    from (select projectId::uuid as project, id::uuid as event, ${OCCURRED_AT} as occurred_at, status, outcome from ${batchRows(ROUTED_EVENT, 1, { status: 'event_status' })}) u
    where e.project_id = u.project and e.id = u.event and e.occurred_at = u.occurred_at and ${PENDING} and ${isHere('u.project')}
    returning e.project_id, e.id, e.occurred_at, e.source_id, e.status, e.replayed
  ),
  ${HAD},
  d as (${insertDeliveries(ROUTED_EVENT.length + 1, UNLESS_DELIVERED)} returning project_id, id, endpoint_id, source_id, event_type, status),
  counted as (${insertCountDeltas(finishedEvents('e'), finishedDeliveries('d'))})
  select array(select id::text from d) as ids`;

/** The events are pending and must be sorted by id. Returns the ids of new deliveries. */
export async function recordRoutes(
  pool: pg.Pool,
  {
    events,
    deliveries,
    agentId,
  }: { events: readonly RoutedEvent[]; deliveries: readonly NewEventDelivery[]; agentId: number },
): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ ids: string[] }>({
    name: 'record-routes',
    text: ROUTED,
    values: [...batchTexts(events, ROUTED_EVENT), ...batchTexts(deliveries, DELIVERY), agentId],
  });
  return new Set(rows[0]?.ids);
}

/** Project id, event id and the format version, which early releases omit. */
export function encodeSignal({ projectId, id }: Pick<EventRef, 'projectId' | 'id'>): string {
  return `${projectId} ${id} ${KV_VERSIONS.signal}`;
}

/** With the time from the event's id. Null if this release cannot read the signal. */
export function decodeSignal(text: string): EventRef | null {
  const [projectId, id, version = '1'] = text.split(' ');
  return version === String(KV_VERSIONS.signal) && projectId && id && isId(projectId) && isId(id)
    ? { projectId, id, occurredAtMs: timeOfId(id) }
    : null;
}
