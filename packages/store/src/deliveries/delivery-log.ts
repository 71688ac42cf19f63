import type { Pool } from 'pg';
import { timeOfId } from '@gateway/core/events';
import { findLoggedEndpoints, type LoggedEndpoint } from '../config/endpoints.js';
import { endpointIdsOfOwner } from '../config/owners.js';
import { insertCountDeltas, unfinishedDeliveries } from '../counts/count-deltas.js';
import type { EventDeliveryStatus } from './claims.js';
import {
  idBound,
  readLog,
  type Groups,
  type LogQuery,
  type Span,
  type Values,
} from '../pagination/log-page.js';
import type { PageRequest, PageResult } from '../pagination/page.js';
import type { Planes } from '../postgres/planes.js';
import { repairKeys } from '../ordering/settle-keys.js';
import { placesAgain, UNLESS_WAITING } from '../events/turns.js';
import { notifyDue } from './agents.js';
import { settleChanged } from './settle-deliveries.js';

/** As it is now. All are null if the endpoint's row no longer exists. */
export interface EndpointNow {
  readonly endpoint_name: string | null;
  readonly endpoint_url: string | null;
  readonly endpoint_status: LoggedEndpoint['status'] | null;
  readonly endpoint_status_reason: string | null;
}

export interface EventDeliveryRow extends EndpointNow {
  readonly project_id: string;
  readonly id: string;
  readonly occurred_at: Date;
  readonly event_id: string;
  readonly endpoint_id: string;
  readonly subscription_id: string | null;
  readonly status: EventDeliveryStatus;
  readonly attempts: number;
  readonly recovered: number;
  readonly next_attempt_at: Date | number | null;
  readonly reason: string | null;
  readonly order_key: string | null;
  readonly is_transformed: boolean;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly event_type: string | null;
  readonly last_attempt: {
    readonly duration_ms: number;
    readonly http_status: number | null;
    readonly error_class: string | null;
  } | null;
}

const COLUMNS = `e.project_id, e.id, e.occurred_at, e.event_id, e.endpoint_id, e.subscription_id, e.status, e.attempts, e.recovered, e.next_attempt_at, e.reason, e.order_key,
  e.transformed_data is not null as is_transformed, e.created_at, e.updated_at, v.event_type, a.last_attempt`;

const JOINS = `left join events v on v.project_id = e.project_id and v.id = e.event_id and v.occurred_at = e.occurred_at
  left join lateral (
    select json_build_object('duration_ms', a.duration_ms, 'http_status', a.http_status, 'error_class', a.error_class) as last_attempt
    from delivery_attempts a where a.project_id = e.project_id and a.event_delivery_id = e.id and a.occurred_at = e.occurred_at order by a.id desc limit 1
  ) a on e.attempts > 0`;

export interface EventDeliveryFilter extends Span {
  readonly statuses?: readonly EventDeliveryStatus[] | undefined;
  readonly endpointId?: string | undefined;
  /** Excludes deleted endpoints. */
  readonly ownerId?: string | undefined;
  readonly eventId?: string | undefined;
  /** Only with `eventId` beside `endpointId` or `ownerId`: no index has endpoint and event type. */
  readonly eventType?: string | undefined;
}

const STATUSES: readonly EventDeliveryStatus[] = [
  'scheduled',
  'processing',
  'retry',
  'success',
  'failure',
  'discarded',
];

/** Ordered by id. An index serves every combination of filters. */
export async function listEventDeliveries(
  { control, data }: Planes,
  projectId: string,
  filter: EventDeliveryFilter,
  page: PageRequest,
): Promise<PageResult<EventDeliveryRow>> {
  const { eventId, eventType, endpointId, ownerId } = filter;
  if (eventId === undefined && eventType !== undefined && (endpointId ?? ownerId) !== undefined)
    throw new Error('no index has endpoint and event type');
  const endpoints = await endpointsOf(control, projectId, filter);
  const statuses = filter.statuses?.length ? filter.statuses : STATUSES;
  const ofColumns = (values: Values) => [
    ...values.where(endpoints, (it) => `e.endpoint_id = any (${it}::uuid[])`),
    ...values.where(eventType, (it) => `e.event_type = ${it}`),
  ];
  const fewOfEvent = (values: Values) => [
    ...ofEvent(eventId!, values),
    ...ofColumns(values),
    `e.status = any (${values.add(statuses)}::event_delivery_status[])`,
  ];
  // The indexes exclude claimed deliveries, so that each enters them only when its agent is done
  // with it.
  const groups: Groups = {
    keys: [
      ['e.endpoint_id', endpoints, 'uuid'],
      ['e.event_type', eventType === undefined ? undefined : [eventType], 'text'],
      ['e.status', statuses.filter((it) => it !== 'processing'), 'event_delivery_status'],
    ],
    predicate: `e.status <> 'processing'`,
  };
  const held = (values: Values) => [
    `e.status = 'processing' and e.claimed_by > 0`,
    ...ofColumns(values),
  ];
  const isAll =
    endpoints === undefined && eventType === undefined && statuses.length === STATUSES.length;
  const log = {
    table: 'event_deliveries',
    projectId,
    span: filter,
    ...(eventId !== undefined
      ? { few: fewOfEvent }
      : isAll
        ? {}
        : { groups, ...(statuses.includes('processing') ? { few: held } : {}) }),
    columns: COLUMNS,
    joins: JOINS,
  } as const satisfies LogQuery;
  const found = await readLog<StoredDelivery>(data, log, page);
  return { ...found, content: await withEndpoints(control, projectId, found.content) };
}

/** Undefined for the whole project. */
async function endpointsOf(
  control: Pool,
  projectId: string,
  { endpointId, ownerId }: Pick<EventDeliveryFilter, 'endpointId' | 'ownerId'>,
): Promise<string[] | undefined> {
  const given = endpointId === undefined ? undefined : [endpointId];
  return ownerId === undefined ? given : endpointIdsOfOwner(control, projectId, ownerId, given);
}

type StoredDelivery = Omit<EventDeliveryRow, keyof EndpointNow>;

export async function withEndpoints<Row extends { readonly endpoint_id: string }>(
  control: Pool,
  projectId: string,
  deliveries: readonly Row[],
): Promise<(Row & EndpointNow)[]> {
  const ids = deliveries.map(({ endpoint_id }) => endpoint_id);
  const endpoints = await findLoggedEndpoints(control, projectId, ids);
  return deliveries.map((delivery) => {
    const { name, url, status, status_reason } = endpoints.get(delivery.endpoint_id) ?? {};
    return {
      ...delivery,
      endpoint_name: name ?? null,
      endpoint_url: url ?? null,
      endpoint_status: status ?? null,
      endpoint_status_reason: status_reason ?? null,
    };
  });
}

/** Only a few rows of one partition are read. */
export function ofEvent(eventId: string, values: Values): string[] {
  const ms = timeOfId(eventId);
  return [
    `e.occurred_at = ${values.add(new Date(ms))}`,
    `e.id between ${values.add(idBound(ms, '0'))}::uuid and ${values.add(idBound(ms, 'f'))}::uuid`,
    `e.event_id = ${values.add(eventId)}::uuid`,
  ];
}

export async function findEventDelivery(
  { control, data }: Planes,
  projectId: string,
  id: string,
): Promise<EventDeliveryRow | undefined> {
  const { rows } = await data.query<StoredDelivery>({
    name: 'find-event-delivery',
    text: `select ${COLUMNS} from event_deliveries e ${JOINS} where e.project_id = $1 and e.id = $2 and e.occurred_at = $3`,
    values: [projectId, id, new Date(timeOfId(id))],
  });
  const [delivery] = await withEndpoints(control, projectId, rows);
  return delivery;
}

export async function readTransformedData(
  pool: Pool,
  projectId: string,
  id: string,
): Promise<string | null> {
  const { rows } = await pool.query<{ data: string | null }>({
    name: 'read-transformed-data',
    text: `select transformed_data as data from event_deliveries where project_id = $1 and id = $2 and occurred_at = $3`,
    values: [projectId, id, new Date(timeOfId(id))],
  });
  return rows[0]?.data ?? null;
}

export interface DeliveryAttemptRow {
  readonly project_id: string;
  readonly event_delivery_id: string;
  readonly id: string;
  readonly endpoint_id: string;
  readonly requested_at: Date;
  readonly duration_ms: number;
  readonly number: number;
  readonly http_status: number | null;
  readonly error_class: string | null;
  readonly error: string | null;
  readonly url: string;
  readonly response_headers: string | null;
  readonly response_body: string | null;
}

const ATTEMPT_COLUMNS =
  'project_id, event_delivery_id, id, endpoint_id, requested_at, duration_ms, number, http_status, error_class, error, url, response_headers, response_body';

const LISTED_ATTEMPTS = 1000;

export async function listDeliveryAttempts(
  pool: Pool,
  projectId: string,
  eventDeliveryId: string,
  id?: string,
): Promise<DeliveryAttemptRow[]> {
  const { rows } = await pool.query<DeliveryAttemptRow>({
    name: 'list-delivery-attempts',
    text: `select ${ATTEMPT_COLUMNS} from delivery_attempts
           where project_id = $1 and event_delivery_id = $2 and occurred_at = $3 and ($5::uuid is null or id = $5) order by id desc limit $4`,
    values: [
      projectId,
      eventDeliveryId,
      new Date(timeOfId(eventDeliveryId)),
      LISTED_ATTEMPTS,
      id ?? null,
    ],
  });
  return rows;
}

/**
 * Makes it due, or holds it if its endpoint is paused, and notifies the agents. One that waits for
 * its next attempt keeps its number of attempts. False if its status is not in `from`. Locks its
 * row.
 */
export async function resendEventDelivery(
  planes: Planes,
  {
    project_id: projectId,
    id,
    endpoint_id: endpointId,
  }: Pick<EventDeliveryRow, 'project_id' | 'id' | 'endpoint_id'>,
  from: readonly EventDeliveryStatus[],
  dueInMs = 0,
): Promise<boolean> {
  const states = await findLoggedEndpoints(planes.control, projectId, [endpointId]);
  const isHeld = states.get(endpointId)?.status === 'paused';
  const { rows } = await planes.data.query<{ orderKey: string | null }>({
    name: 'resend-event-delivery',
    text: `with over as (
             select project_id, endpoint_id, source_id, event_type, status from event_deliveries
             where project_id = $1 and id = $2 and occurred_at = $3 and status = any ($4::event_delivery_status[]) for update
           ),
           d as (
             update event_deliveries d set reason = null, updated_at = now(),
               status = case when d.status = 'retry' then 'retry'::event_delivery_status else 'scheduled' end,
               next_attempt_at = greatest($6::timestamptz, least(case when $5::float8 = 0 then d.next_attempt_at end, now() + $5::float8 * interval '1 millisecond')) + ${UNLESS_WAITING}
             where d.project_id = $1 and d.id = $2 and d.occurred_at = $3 and exists (select from over)
             returning project_id, id, occurred_at, endpoint_id, order_key, next_attempt_at
           ),
           ${placesAgain('d')},
           counted as (${insertCountDeltas(unfinishedDeliveries('over'))})
           select order_key as "orderKey" from d`,
    values: [projectId, id, new Date(timeOfId(id)), from, dueInMs, isHeld ? 'infinity' : null],
  });
  if (!rows[0]) return false;
  const { orderKey } = rows[0];
  if (orderKey !== null) await repairKeys(planes.data, [{ projectId, endpointId, orderKey }]);
  await settleChanged(planes, projectId, states);
  if (!isHeld) await notifyDue(planes.control, [projectId]);
  return true;
}
