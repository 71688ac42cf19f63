import type { Pool } from 'pg';
import { timeOfId } from '@gateway/core/events';
import { findLoggedEndpoints, type LoggedEndpoint } from '../config/endpoints.js';
import type { EventDeliveryStatus } from '../deliveries/claims.js';
import type { EventDeliveryRow } from '../deliveries/delivery-log.js';
import type { EventRow } from '../events/event-log.js';
import { idBound } from '../pagination/log-page.js';
import type { Planes } from '../postgres/planes.js';

interface EventNames {
  readonly project_name: string;
  /** Null if the event was created over the API, or if the source's row no longer exists. */
  readonly source_name: string | null;
}

export interface FoundEvent extends EventRow, EventNames {
  readonly data: string;
}

/** By primary key, with names of the configuration. No lock. */
export async function findEventWithNames(
  { control, data }: Planes,
  projectId: string,
  id: string,
): Promise<FoundEvent | undefined> {
  const { rows } = await data.query<Omit<FoundEvent, keyof EventNames>>({
    name: 'find-event-with-names',
    text: `select e.project_id, e.id, e.occurred_at, e.accepted_at, e.source_id, e.coordinates, e.event_type, e.message_type, e.endpoint_id, e.owner_id,
                  e.idempotency_key, e.status, e.outcome, e.headers, e.notes, octet_length(e.data) as data_bytes, e.data
           from events e where e.project_id = $1 and e.id = $2 and e.occurred_at = $3`,
    values: [projectId, id, new Date(timeOfId(id))],
  });
  const [event] = rows;
  if (!event) return undefined;
  const { rows: named } = await control.query<EventNames>({
    name: 'names-of-event',
    text: `select p.name as project_name, s.name as source_name
           from projects p left join sources s on s.project_id = p.id and s.id = $2 where p.id = $1`,
    values: [projectId, event.source_id],
  });
  const [names] = named;
  return names && { ...event, ...names };
}

/** All are null if the endpoint's row no longer exists. */
interface EndpointNow extends Pick<EventDeliveryRow, 'endpoint_name' | 'endpoint_url'> {
  readonly endpoint_status: LoggedEndpoint['status'] | null;
  readonly endpoint_status_reason: string | null;
}

type DeliveryColumns = 'id' | 'endpoint_id' | 'subscription_id' | 'status' | 'attempts';

export interface ExplainedDelivery
  extends
    Pick<
      EventDeliveryRow,
      DeliveryColumns | 'recovered' | 'next_attempt_at' | 'reason' | 'updated_at'
    >,
    EndpointNow {
  readonly attempted_at: Date | null;
  readonly http_status: number | null;
  readonly error_class: string | null;
  readonly error: string | null;
}

export const EXPLAINED_DELIVERIES = 100;

/** With their number by status. In `first`, successful deliveries come last. */
export interface ExplainedDeliveries {
  readonly first: readonly ExplainedDelivery[];
  readonly counts: Readonly<Partial<Record<EventDeliveryStatus, number>>>;
}

/**
 * An event's deliveries share its millisecond, so only a few rows of one partition are read, by
 * primary key.
 */
const OF_EVENT =
  'd.project_id = $1 and d.occurred_at = $2 and d.id between $3 and $4 and d.event_id = $5';

/**
 * The first 100, each with its last attempt, and the number of all by status. No lock.
 */
export async function explainDeliveries(
  { control, data }: Planes,
  { project_id, id }: Pick<EventRow, 'project_id' | 'id'>,
): Promise<ExplainedDeliveries> {
  const ms = timeOfId(id);
  const values = [project_id, new Date(ms), idBound(ms, '0'), idBound(ms, 'f'), id];
  const counting = data.query<{ status: EventDeliveryStatus; count: number }>({
    name: 'count-deliveries-of-event',
    text: `select d.status, count(*)::int as count from event_deliveries d where ${OF_EVENT} group by d.status`,
    values,
  });
  const reading = data.query<Omit<ExplainedDelivery, keyof EndpointNow>>({
    name: 'explain-deliveries',
    text: `select d.id, d.endpoint_id, d.subscription_id, d.status, d.attempts, d.recovered, d.next_attempt_at, d.reason, d.updated_at,
                  a.requested_at as attempted_at, a.http_status, a.error_class, a.error
           from (select * from event_deliveries d where ${OF_EVENT} order by d.status = 'success', d.id limit ${EXPLAINED_DELIVERIES}) d
           left join lateral (select a.requested_at, a.http_status, a.error_class, a.error from delivery_attempts a
                              where a.project_id = d.project_id and a.event_delivery_id = d.id and a.occurred_at = d.occurred_at
                              order by a.id desc limit 1) a on true
           order by d.status = 'success', d.id`,
    values,
  });
  const [{ rows: counted }, { rows }] = await Promise.all([counting, reading]);
  const ids = rows.map(({ endpoint_id }) => endpoint_id);
  const endpoints = await findLoggedEndpoints(control, project_id, ids);
  const first = rows.map(({ id: deliveryId, endpoint_id, ...delivery }) => {
    const endpoint = endpoints.get(endpoint_id);
    return {
      id: deliveryId,
      endpoint_id,
      endpoint_name: endpoint?.name ?? null,
      endpoint_url: endpoint?.url ?? null,
      endpoint_status: endpoint?.status ?? null,
      endpoint_status_reason: endpoint?.status_reason ?? null,
      ...delivery,
    };
  });
  return { first, counts: Object.fromEntries(counted.map(({ status, count }) => [status, count])) };
}

export interface OtherRecord {
  readonly thing:
    'event delivery' | 'quarantined message' | 'project' | 'endpoint' | 'subscription' | 'source';
  readonly project_id: string;
  /**
   * The event id of a delivery, the status of a quarantined message or, for other records, the
   * name.
   */
  readonly detail: string;
}

/** Records of the project with this id, other than events. One index probe each, no lock. */
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
  /** Pending events accepted earlier, up to a thousand. */
  readonly before: number;
}

/** Scans the agents and at most a thousand index entries. No lock. */
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
