import type { IncomingHttpHeaders } from 'node:http';
import { Type } from '@sinclair/typebox';
import { findEndpoint, findEventType, listEventTypes, ownerExists } from '@gateway/store/config';
import { findEvent, listEvents, type EventRow, createEvent as insertEvent, encodeSignal, type MessageType } from '@gateway/store/events';
import { isGatewayError, type InvalidField } from '@gateway/core/errors';
import { customHeaderProblem, headerOwner, MESSAGE_TYPE_HEADER, travellingHeaders } from '@gateway/core/events';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { carryTrace, creationErrorSpan, creationSpan, endSpan, isSampled, openSpanTracer, traceContextOf } from '@gateway/core/tracing';
import { found, listRoute, projectRoute, withUid, type Route, type ProjectCall } from '../api/route.js';
import { pageQuery, timeQuery, timeRange } from '../http/list-query.js';
import { RawJson, type Answer } from '../http/response.js';
import { object, Id, named, nullable, oneOf, Timestamp, Word, assertValid } from '../http/schema.js';
import { measureIngest } from '../api/measure.js';

const common = {
  event_type: Word,
  data: Type.Object({}, { additionalProperties: true, description: 'Sent to the endpoints byte for byte as it stands here.' }),
  custom_headers: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 8192 }), { maxProperties: 100 })),
  idempotency_key: Type.Optional(Word),
};
const SingleEvent = named('NewEvent', object({ ...common, endpoint_id: Type.Optional(Id) }));
const FanoutEvent = named('NewFanoutEvent', object({ ...common, owner_id: Word }));
const BroadcastEvent = named('NewBroadcastEvent', object(common));
const CreatedEvent = named(
  'CreatedEvent',
  object({ uid: Id, duplicate: Type.Boolean({ description: 'There was an event with this idempotency key: `uid` is its id.' }) }),
);
/** 200 for a duplicate. */
const created = { raw: 'data', carriesMessage: true, data: CreatedEvent, status: 201, alsoStatus: [200] } as const;

const Event = named(
  'Event',
  object({
    uid: Id,
    project_id: Id,
    occurred_at: Timestamp,
    created_at: Timestamp,
    source_id: nullable(Type.String()),
    coordinates: Type.String({ description: 'Where its source had the message; `api` for one that was created here.' }),
    event_type: Type.String(),
    message_type: oneOf(['single', 'fanout', 'broadcast']),
    endpoint_id: nullable(Type.String()),
    owner_id: nullable(Type.String()),
    idempotency_key: nullable(Type.String()),
    status: oneOf(['pending', 'processed', 'failed']),
    outcome: nullable(Type.String({ description: 'Null while it is pending: docs/reference/errors.md lists them.' })),
    headers: Type.Record(Type.String(), Type.String()),
    notes: Type.Array(Type.String(), { description: 'What was left out of it, usually nothing.' }),
    data: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], {
      description: 'Null in a list when it is larger than 16 KB.',
    }),
    data_bytes: Type.Integer(),
  }),
);
const EventType = named(
  'EventType',
  object({
    uid: Id,
    project_id: Id,
    name: Type.String(),
    description: Type.String(),
    json_schema: Type.Unknown({ description: 'JSON Schema 2020-12 of the data; null when it is unknown.' }),
    created_at: Timestamp,
    updated_at: Timestamp,
    deprecated_at: nullable(Timestamp),
  }),
);

const ListQuery = object({
  ...pageQuery,
  ...timeQuery,
  sourceId: Type.Optional(Id),
  event_type: Type.Optional(Word),
  idempotencyKey: Type.Optional(Word),
  status: Type.Optional(oneOf(['pending', 'processed', 'failed'])),
});

function view({ id, accepted_at, headers, data, notes, ...row }: EventRow): unknown {
  const json = (text: string | null) => (text === null ? null : new RawJson(text));
  return { uid: id, ...row, created_at: accepted_at, headers: json(headers), data: json(data), notes: json(notes) ?? [] };
}

export const eventRoutes: readonly Route[] = [
  projectRoute(
    'POST /events',
    'Creates an event for one endpoint, or without endpoint_id for those that subscribe to it.',
    { ...created, body: SingleEvent },
    async (call) => {
      const { endpoint_id: endpointId = null } = call.body;
      if (endpointId !== null && !(await findEndpoint(call.database.knex, call.project.id, endpointId)))
        assertValid([{ field: 'endpoint_id', sentence: 'is not an endpoint of this project' }]);
      return createEvent(call, { messageType: 'single', endpointId, ownerId: null });
    },
  ),
  projectRoute(
    'POST /events/fanout',
    'Creates an event for all endpoints of an owner.',
    { ...created, createsIn: '/events', body: FanoutEvent },
    async (call) => {
      const { owner_id: ownerId } = call.body;
      if (!(await ownerExists(call.database.knex, call.project.id, ownerId)))
        assertValid([{ field: 'owner_id', sentence: 'is the owner of no endpoint of this project' }]);
      return createEvent(call, { messageType: 'fanout', endpointId: null, ownerId });
    },
  ),
  projectRoute(
    'POST /events/broadcast',
    'Creates an event for all endpoints of the project.',
    { ...created, createsIn: '/events', body: BroadcastEvent },
    (call) => createEvent(call, { messageType: 'broadcast', endpointId: null, ownerId: null }),
  ),
  listRoute(
    '/events',
    'Lists events by the time of their messages.',
    { query: ListQuery, title: 'events', data: Event },
    ({ database: { pool }, project, query }, page) =>
      listEvents(pool, project.id, { ...query, eventType: query.event_type, ...timeRange(query) }, page),
    view,
  ),
  projectRoute('GET /events/:id', 'Shows an event.', { data: Event }, async ({ database, project, id }) => {
    const row = found(await findEvent(database.pool, project.id, id), 'event', id);
    return { message: 'event', data: view(row) };
  }),
];

export const eventTypeRoutes: readonly Route[] = [
  listRoute(
    '/event-types',
    'Lists the event types that were imported from OpenAPI documents.',
    { query: object({ ...pageQuery, name: Type.Optional(Word) }), title: 'event types', data: EventType },
    ({ database, project, query }, page) => listEventTypes(database.knex, project.id, query, page),
    withUid,
  ),
  projectRoute('GET /event-types/:id', 'Shows an event type with its schema.', { data: EventType }, async ({ database, project, id }) => {
    const row = found(await findEventType(database.knex, project.id, id), 'event type', id);
    return { message: 'event type', data: withUid(row) };
  }),
];

interface EventBody {
  readonly event_type: string;
  readonly custom_headers?: Readonly<Record<string, string>>;
  readonly idempotency_key?: string;
}

/**
 * Commits an event, then signals it to the create-event queue without waiting: KV may be down. Answers 200 with the first event if the
 * idempotency key is taken. Throws `invalid_request` for wrong headers, or data of more than `ingest.max_message_bytes`.
 */
async function createEvent(
  { database, config, plugins, usage, kv, log, project, body, raw, headers: requestHeaders }: ProjectCall<EventBody>,
  target: { messageType: MessageType; endpointId: string | null; ownerId: string | null },
): Promise<Answer> {
  const { custom_headers: custom = {}, event_type: eventType, idempotency_key: idempotencyKey = null } = body;
  const { max_message_bytes: limit, idempotency_window_seconds: windowSeconds } = config.ingest;
  const problems = headerProblems(custom);
  if (Buffer.byteLength(raw) > limit)
    problems.push({ field: 'data', sentence: `has more than ${limit} bytes, which is ingest.max_message_bytes` });
  const projectId = project.id;
  const headers = travellingHeaders({}, custom);
  const dynamic = target.messageType === 'single' && target.endpointId === null;
  const event = { projectId, ...target, eventType, idempotencyKey, headers, data: raw };
  const { id, duplicate } = await traceCreation(plugins, { projectId, eventType, dynamic, requestHeaders, headers }, () => {
    assertValid(problems);
    return measureIngest(plugins, projectId, () => insertEvent(database.pool, event, windowSeconds));
  });
  if (duplicate) return { status: 200, message: 'an event with this idempotency key is there already', data: { uid: id, duplicate } };
  usage.event(projectId, raw);
  // Not awaited: the reconciler finds an event whose signal is lost.
  kv.queue('create-event')
    .push([encodeSignal({ projectId, id })])
    .catch((error: unknown) => log.debug({ error }, 'KV is away: a created event is routed by the reconciler, a few seconds later.'));
  return { message: 'event created', data: { uid: id, duplicate } };
}

function headerProblems(custom: Readonly<Record<string, string>>): InvalidField[] {
  return Object.entries(custom).flatMap(([name, value]) => {
    const field = `custom_headers.${name}`;
    if (name.toLowerCase() === MESSAGE_TYPE_HEADER)
      return [{ field, sentence: 'is decided by the route here: /events, /events/fanout or /events/broadcast' }];
    const owner = headerOwner(name);
    const sentence = owner ? `is set by ${owner}: leave it out, or give it another name` : customHeaderProblem(name, value);
    return sentence === undefined ? [] : [{ field, sentence }];
  });
}

interface Creation {
  readonly projectId: string;
  readonly eventType: string;
  readonly dynamic: boolean;
  readonly requestHeaders: IncomingHttpHeaders;
  readonly headers: Record<string, string>;
}

/** Creates an event after the headers got the trace context. With a tracer, its trace continues that of the request or of its headers, or starts here. */
export async function traceCreation<Created extends { readonly id: string; readonly duplicate: boolean }>(
  { tracer: active }: Pick<ActivatedPlugins, 'tracer'>,
  { projectId, eventType, dynamic, requestHeaders, headers }: Creation,
  create: () => Promise<Created>,
): Promise<Created> {
  if (!active) return create();
  const parent = traceContextOf(traceHeaders(requestHeaders)) ?? traceContextOf(headers);
  if (parent && !isSampled(parent)) {
    carryTrace(headers, parent);
    return create();
  }
  const tracer = openSpanTracer();
  const startedAtMs = Date.now();
  const place = { 'gateway.project': projectId, 'gateway.event_type': eventType };
  const open = tracer.start(creationSpan(dynamic), { startedAtMs, parent });
  carryTrace(headers, open.context);
  try {
    const created = await create();
    // The span of a duplicate is never ended, so it is never exported.
    if (open.recording && !created.duplicate)
      endSpan(open, { attributes: { ...place, 'gateway.event': created.id }, endedAtMs: Date.now() });
    return created;
  } catch (error) {
    const span = tracer.start(creationErrorSpan(dynamic), { startedAtMs, parent });
    if (span.recording) endSpan(span, { ...failure(error, place), endedAtMs: Date.now() });
    throw error;
  }
}

function traceHeaders({ traceparent, tracestate }: IncomingHttpHeaders): Record<string, string> {
  return {
    ...(typeof traceparent === 'string' ? { traceparent } : {}),
    ...(tracestate === undefined ? {} : { tracestate: String(tracestate) }),
  };
}

/** Error messages are not exported: they may quote the request. */
function failure(error: unknown, place: { 'gateway.project': string; 'gateway.event_type': string }) {
  if (isGatewayError(error)) {
    // The caller's mistake, reported to the caller: not an exception.
    const { code } = error;
    return { attributes: { ...place, 'gateway.code': code }, error: { type: code, sentence: 'The API rejected the event.', told: true } };
  }
  const { code } = (error ?? {}) as { code?: unknown };
  return { attributes: place, error: { type: typeof code === 'string' ? code : 'error', sentence: 'The event could not be stored.' } };
}
