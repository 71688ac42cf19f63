import { GatewayError } from '@gateway/core/errors';
import {
  ATTEMPT_ERRORS,
  attemptErrorOf,
  DISCARD_REASONS,
  discardReasonOf,
  findEventDelivery,
  listDeliveryAttempts,
  listEventDeliveries,
  readTransformedData,
  WAIT_REASONS,
  waitReasonOf,
  type DeliveryAttemptRow,
  type DiscardReason,
  type EventDeliveryRow,
} from '@gateway/store/deliveries';
import { readFunction } from '@gateway/store/config';
import { findEvent, type EventRow } from '@gateway/store/events';
import type { ShardPlanes } from '@gateway/store/shards';
import {
  boolean,
  described,
  found,
  Id,
  idQuery,
  int,
  invalid,
  listRoute,
  named,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  pageQuery,
  projectItem,
  projectRoute,
  RawJson,
  string,
  timeQuery,
  timeRange,
  Timestamp,
  Type,
  Word,
  type ProjectCall,
  type Route,
} from '../../api/vocabulary.js';
import { CHANGED, refusal, RESENT, sendNow } from './resend.js';

const STATUSES = ['scheduled', 'processing', 'retry', 'success', 'failure', 'discarded'] as const;
const WAITS = [
  'paused',
  'retry',
  'order',
  ...(Object.keys(WAIT_REASONS) as (keyof typeof WAIT_REASONS)[]),
] as const;

const ListQuery = object({
  ...pageQuery,
  ...timeQuery,
  ...idQuery,
  ...optional({
    status: Type.Array(oneOf(STATUSES)),
    endpointId: Id,
    eventId: Id,
    event_type: described(Word, 'Cannot be combined with `endpointId` unless `eventId` is given.'),
  }),
});
const EventDelivery = namedObject('EventDelivery', {
  uid: Id,
  project_id: Id,
  occurred_at: Timestamp,
  event_id: Id,
  endpoint_id: Id,
  subscription_id: nullable(
    string('The subscription that matched; null for events that name an endpoint or an owner.'),
  ),
  status: oneOf(STATUSES),
  attempts: int(),
  recovered: int(
    'How often the delivery was recovered from an agent that died. Each time, the request may have been sent twice.',
  ),
  next_attempt_at: nullable(Timestamp),
  reason: nullable(
    string(
      'Why the delivery failed or was discarded, or what it waits for; null over a portal link.',
    ),
  ),
  discard_reason: nullable(
    oneOf(
      Object.keys(DISCARD_REASONS) as DiscardReason[],
      'Why a `discarded` delivery is not sent. `function`: the function of the subscription returned null.',
    ),
  ),
  waits_for: nullable(
    oneOf(
      WAITS,
      'Why a `scheduled` or `retry` delivery waits: `paused` is its endpoint, `retry` the next attempt after a failed one, `order` a delivery with the same key. Null when it is due or does not wait.',
    ),
  ),
  order_key: nullable(Id, 'Digest of the key by which it is ordered; null if it is not.'),
  is_transformed: boolean(
    'Whether the function of the subscription produced the data that is sent.',
  ),
  last_attempt: nullable(
    object(
      {
        duration_ms: int(),
        http_status: nullable(int()),
        error_class: nullable(string()),
      },
      { description: 'The latest attempt; null before the first.' },
    ),
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
  event_metadata: object({ uid: Id, event_type: nullable(string()) }),
  endpoint_metadata: object({
    uid: Id,
    name: nullable(string()),
    url: nullable(string()),
    status: nullable(string(), '`active`, `paused`, `inactive` or `deleted`.'),
  }),
});
const DeliveryAttempt = namedObject('DeliveryAttempt', {
  uid: Id,
  project_id: Id,
  event_delivery_id: Id,
  endpoint_id: Id,
  requested_at: Timestamp,
  duration_ms: int(),
  number: int('Number of the attempt, from 1.'),
  status: boolean('Whether the attempt succeeded.'),
  http_status: nullable(int()),
  error_class: nullable(string()),
  error: nullable(string('Description of the error; null over a portal link.')),
  error_code: nullable(
    oneOf(ATTEMPT_ERRORS, 'The error in more detail than `error_class`, if known.'),
  ),
  url: string(),
  response_headers: named('ResponseHeaders', nullable(Type.Record(string(), string()))),
  response_body: nullable(string()),
});
const SentEvent = namedObject('SentEvent', {
  uid: Id,
  occurred_at: Timestamp,
  event_type: string(),
  headers: Type.Record(string(), string()),
  data: named(
    'SentData',
    nullable(
      Type.Record(string(), Type.Unknown(), {
        description: 'Data that is sent; null if the function of the subscription has not run yet.',
      }),
    ),
  ),
  is_transformed: boolean('Whether the function of the subscription produced the data.'),
  data_bytes: int(),
});
const ResendQuery = object({
  force: Type.Optional(boolean('Also resends a successful delivery.')),
});

function view(delivery: EventDeliveryRow, { ownerId }: Pick<ProjectCall, 'ownerId'>): unknown {
  const {
    id,
    event_type,
    next_attempt_at,
    endpoint_name,
    endpoint_url,
    endpoint_status,
    endpoint_status_reason: _reason,
    ...row
  } = delivery;
  return {
    uid: id,
    ...row,
    // A delivery to a paused endpoint has no scheduled attempt; the endpoint's status explains why.
    next_attempt_at: next_attempt_at instanceof Date ? next_attempt_at : null,
    waits_for: waitOf(delivery),
    discard_reason: row.status === 'discarded' ? discardReasonOf(row.reason) : null,
    // For operators.
    reason: ownerId === undefined ? row.reason : null,
    event_metadata: { uid: row.event_id, event_type },
    endpoint_metadata: {
      uid: row.endpoint_id,
      name: endpoint_name,
      url: endpoint_url,
      status: endpoint_status,
    },
  };
}

function waitOf({
  status,
  reason,
  attempts,
  next_attempt_at: next,
}: EventDeliveryRow): (typeof WAITS)[number] | null {
  if (next === null) return status === 'scheduled' || status === 'retry' ? 'order' : null;
  if (!(next instanceof Date)) return 'paused';
  const code = reason === null ? undefined : waitReasonOf(reason);
  return code ?? (status === 'retry' && attempts > 0 ? 'retry' : null);
}

/**
 * Truncates the body here too, because an agent with another `max_response_size` may have stored
 * more.
 */
function attemptView(
  { id, response_headers, response_body, error_class, error, ...row }: DeliveryAttemptRow,
  { config, ownerId }: ProjectCall,
): unknown {
  return {
    uid: id,
    ...row,
    response_body:
      response_body === null ? null : firstBytes(response_body, config.max_response_size * 1024),
    status: error_class === null,
    error_class,
    // For operators.
    error: ownerId === undefined ? error : null,
    error_code: attemptErrorOf({ error_class, error }),
    response_headers: response_headers === null ? null : new RawJson(response_headers),
  };
}

export const eventDeliveryRoutes: readonly Route[] = [
  listRoute(
    '/eventdeliveries',
    'Lists event deliveries by the time of their messages.',
    { query: ListQuery, title: 'event deliveries', data: EventDelivery, portal: 'any' },
    ({ read, project, query, ownerId }, page) => {
      const {
        status: statuses,
        endpointId,
        eventId,
        event_type: eventType,
        query: idPrefix,
      } = query;
      if (eventType !== undefined && endpointId !== undefined && eventId === undefined)
        throw invalid(
          'event_type',
          'cannot be combined with endpointId: list by one of them, or by eventId',
        );
      if (eventType !== undefined && ownerId !== undefined && eventId === undefined)
        throw invalid('event_type', 'is not allowed for a portal link, unless eventId is given');
      const filter = {
        statuses,
        endpointId,
        ownerId,
        eventId,
        eventType,
        idPrefix,
        ...timeRange(query),
      };
      return read((planes) => listEventDeliveries(planes, project.id, filter, page));
    },
    view,
  ),
  projectItem(
    'GET /eventdeliveries/:id',
    'Shows an event delivery.',
    { thing: 'event delivery', data: EventDelivery, portal: 'any' },
    (call) => requireDelivery(call, call.id),
    view,
  ),
  projectItem(
    'GET /eventdeliveries/:id/event',
    'Shows the event of a delivery as its endpoint receives it.',
    { thing: 'event', data: SentEvent, portal: 'any', name: 'getEvent' },
    async (call) => {
      const { planes } = call;
      const delivery = await requireDelivery(call, call.id);
      const { event_id: eventId, is_transformed } = delivery;
      const event = found(await findEvent(planes.data, call.project.id, eventId), 'event', eventId);
      return { ...event, is_transformed, data: await sentData(planes, delivery, event) };
    },
    ({ id, occurred_at, event_type, headers, data, is_transformed }) => ({
      uid: id,
      occurred_at,
      event_type,
      headers: new RawJson(headers),
      data: data === null ? null : new RawJson(data),
      is_transformed,
      data_bytes: Buffer.byteLength(data ?? ''),
    }),
  ),
  projectRoute(
    'GET /eventdeliveries/:id/deliveryattempts',
    'Lists the attempts of a delivery, newest first.',
    { data: object({ content: Type.Array(DeliveryAttempt) }), portal: 'any' },
    async (call) => {
      const { id } = await requireDelivery(call, call.id);
      const attempts = await listDeliveryAttempts(call.planes.data, call.project.id, id);
      return {
        message: 'delivery attempts',
        data: { content: attempts.map((row) => attemptView(row, call)) },
      };
    },
  ),
  projectItem(
    'GET /eventdeliveries/:id/deliveryattempts/:attempt_id',
    'Shows a delivery attempt.',
    { thing: 'delivery attempt', data: DeliveryAttempt, portal: 'any' },
    async ({ planes, project, id, params }) =>
      (await listDeliveryAttempts(planes.data, project.id, id, params['attempt_id']))[0],
    attemptView,
  ),
  projectRoute(
    'PUT /eventdeliveries/:id/resend',
    'Sends a delivery now that failed, was discarded, or waits for its next attempt. If the circuit breaker of its endpoint is open, the delivery is the probe.',
    {
      query: ResendQuery,
      data: EventDelivery,
      portal: 'any',
    },
    async (call) => {
      const isForced = call.query.force === true;
      const delivery = await requireDelivery(call, call.id);
      const refused = refusal(delivery, isForced);
      if (refused) throw new GatewayError('conflict', refused);
      const { isDue, isProbe } = await sendNow(call, delivery, RESENT.slice(isForced ? 0 : 1));
      if (!isDue) throw new GatewayError('conflict', { sentence: CHANGED });
      return {
        message: isProbe
          ? 'event delivery scheduled as the probe of its open circuit breaker'
          : 'event delivery scheduled',
        data: view(await requireDelivery(call, call.id), call),
      };
    },
  ),
];

/** Without a partial character at the end. */
function firstBytes(text: string, max: number): string {
  const bytes = Buffer.from(text);
  return bytes.length <= max
    ? text
    : new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, max), {
        stream: true,
      });
}

/** Null if a function must run first. */
async function sentData(
  { control, data }: ShardPlanes,
  delivery: EventDeliveryRow,
  event: EventRow,
): Promise<string | null> {
  const {
    project_id: projectId,
    id,
    subscription_id: subscriptionId,
    status,
    is_transformed,
  } = delivery;
  if (is_transformed) return readTransformedData(data, projectId, id);
  if (subscriptionId === null || status === 'success') return event.data;
  return (await readFunction(control, projectId, subscriptionId)) ? null : event.data;
}

/** Throws `not_found`. */
async function requireDelivery(
  { planes, project }: Pick<ProjectCall, 'planes' | 'project'>,
  id: string,
): Promise<EventDeliveryRow> {
  return found(await findEventDelivery(planes, project.id, id), 'event delivery', id);
}
