import type { Pool } from 'pg';
import { timeOfId } from '@gateway/core/events';
import { findEvent, type EventRow, type WholeEvent } from '../events/event-log.js';
import { idBound } from '../pagination/log-page.js';
import type { Planes } from '../postgres/planes.js';
import type { EventDeliveryStatus } from './claims.js';
import { withEndpoints, type EventDeliveryRow } from './delivery-log.js';

interface EventNames {
  readonly project_name: string;
  /** Null if the event was created over the API, or if the source's row no longer exists. */
  readonly source_name: string | null;
}

export interface FoundEvent extends WholeEvent, EventNames {}

/** By primary key. No lock. */
export async function findEventWithNames(
  { control, data }: Planes,
  projectId: string,
  id: string,
): Promise<FoundEvent | undefined> {
  const event = await findEvent(data, projectId, id);
  if (!event) return undefined;
  const { rows } = await control.query<EventNames>({
    name: 'names-of-event',
    text: `select p.name as project_name, s.name as source_name
           from projects p left join sources s on s.project_id = p.id and s.id = $2 where p.id = $1`,
    values: [projectId, event.source_id],
  });
  return rows[0] && { ...event, ...rows[0] };
}

type StoredDelivery = Pick<
  EventDeliveryRow,
  | ('id' | 'endpoint_id' | 'subscription_id' | 'status' | 'attempts' | 'recovered')
  | ('next_attempt_at' | 'reason' | 'updated_at' | 'order_key')
> & {
  /** The delivery with the same key that is sent first. Null unless it waits for its turn. */
  readonly waits_for_delivery_id: string | null;
  /** Since when that key is parked. */
  readonly parked_at: Date | null;
  readonly attempted_at: Date | null;
  readonly http_status: number | null;
  readonly error_class: string | null;
  readonly error: string | null;
};

export const EXPLAINED_DELIVERIES = 100;

/** Only a few rows of one partition are read, by primary key. */
const OF_EVENT =
  'd.project_id = $1 and d.occurred_at = $2 and d.id between $3 and $4 and d.event_id = $5';

/**
 * The first 100, each with its last attempt, successful ones last, and the number of all by status.
 * No lock.
 */
export async function explainDeliveries(
  { control, data }: Planes,
  { project_id, id }: Pick<EventRow, 'project_id' | 'id'>,
) {
  const ms = timeOfId(id);
  const values = [project_id, new Date(ms), idBound(ms, '0'), idBound(ms, 'f'), id];
  const counting = data.query<{ status: EventDeliveryStatus; count: number }>({
    name: 'count-deliveries-of-event',
    text: `select d.status, count(*)::int as count from event_deliveries d where ${OF_EVENT} group by d.status`,
    values,
  });
  const reading = data.query<StoredDelivery>({
    name: 'explain-deliveries',
    text: `select d.id, d.endpoint_id, d.subscription_id, d.status, d.attempts, d.recovered, d.next_attempt_at, d.reason, d.updated_at, d.order_key, k.delivery_id as waits_for_delivery_id, k.parked_at,
                  a.requested_at as attempted_at, a.http_status, a.error_class, a.error
           from (select * from event_deliveries d where ${OF_EVENT} order by d.status = 'success', d.id limit ${EXPLAINED_DELIVERIES}) d
           left join lateral (select a.requested_at, a.http_status, a.error_class, a.error from delivery_attempts a
                              where a.project_id = d.project_id and a.event_delivery_id = d.id and a.occurred_at = d.occurred_at
                              order by a.id desc limit 1) a on true
           left join ordered_keys k on d.order_key is not null and d.status in ('scheduled', 'retry') and d.next_attempt_at is null
             and k.project_id = d.project_id and k.endpoint_id = d.endpoint_id and k.order_key = d.order_key
           order by d.status = 'success', d.id`,
    values,
  });
  const [{ rows: counted }, { rows }] = await Promise.all([counting, reading]);
  const counts: Readonly<Partial<Record<EventDeliveryStatus, number>>> = Object.fromEntries(
    counted.map(({ status, count }) => [status, count]),
  );
  return { first: await withEndpoints(control, project_id, rows), counts };
}

export interface OtherRecord {
  readonly thing:
    'event delivery' | 'quarantined message' | 'project' | 'endpoint' | 'subscription' | 'source';
  readonly project_id: string;
  /**
   * The event of a delivery, the status of a quarantined message or, of other records, the name.
   */
  readonly detail: string;
}

/** Records of the project other than events. One index probe each, no lock. */
export async function findOtherRecords(
  { control, data }: Planes,
  projectId: string,
  id: string,
): Promise<OtherRecord[]> {
  const named = ['endpoint', 'subscription', 'source'].map(
    (thing) =>
      `select '${thing}', project_id, name from ${thing}s where project_id = $2 and id = $1`,
  );
  const [logged, configured] = await Promise.all([
    data.query<OtherRecord>({
      name: 'find-logged-meanings',
      text: `select 'quarantined message' as thing, project_id, status::text as detail from quarantined_messages where project_id = $2 and id = $1
             union all
             select 'event delivery', project_id, event_id::text from event_deliveries where project_id = $2 and id = $1 and occurred_at = $3`,
      values: [id, projectId, new Date(timeOfId(id))],
    }),
    control.query<OtherRecord>({
      name: 'find-configured-meanings',
      text: `select 'project' as thing, id as project_id, name as detail from projects where id = $2 and id = $1
             union all ${named.join(' union all ')}`,
      values: [id, projectId],
    }),
  ]);
  return [...logged.rows, ...configured.rows];
}

export interface RoutingBacklog {
  readonly agents: readonly string[];
  /** Accepted earlier, up to a thousand. */
  readonly before: number;
}

/** Reads the agents and at most a thousand index entries. No lock. */
export async function readRoutingBacklog(pool: Pool, acceptedAt: Date): Promise<RoutingBacklog> {
  const { rows } = await pool.query<RoutingBacklog>({
    name: 'read-waiting',
    text: `select array(select name from agents where expires_at > now() order by id) as agents,
                  (select count(*) from (select from events where status = 'pending' and accepted_at < $1 limit 1000) e)::int as before`,
    values: [acceptedAt],
  });
  return rows[0]!;
}

/** Null if the event's idempotency key has expired or belongs to another event. */
export async function keyExpiry(
  pool: Pool,
  { project_id, id, idempotency_key }: Pick<EventRow, 'project_id' | 'id' | 'idempotency_key'>,
): Promise<Date | null> {
  const { rows } = await pool.query<{ expires_at: Date }>({
    name: 'key-held-until',
    text: 'select expires_at from idempotency_keys where project_id = $1 and key = $2 and event_id = $3 and expires_at > now()',
    values: [project_id, idempotency_key, id],
  });
  return rows[0]?.expires_at ?? null;
}
