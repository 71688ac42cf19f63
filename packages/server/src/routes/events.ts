import { Type, type Static } from '@sinclair/typebox';
import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { customHeaderProblem, MESSAGE_TYPE_HEADER, travellingHeaders } from '@gateway/core/events';
import { findEndpoint, ownerExists } from '@gateway/store/config';
import { createEvent, eventOfKey, findEvent, listEvents, encodeSignal, type EventRow, type MessageType } from '@gateway/store/events';
import type { Answer } from '../http/envelope.js';
import { measureIngest } from '../telemetry/measure.js';
import { refuse } from '../http/mount.js';
import { pageQuery, pageRequest, pageView } from '../http/pagination.js';
import type { Parts } from '../http/server-context.js';
import { RawJson } from '../http/raw-json.js';
import { projectRoute, type ProjectCall, type Route } from '../http/route.js';
import { closed, Id, oneOf, Word } from '../http/schema.js';
import { span, spanQuery } from '../http/time-span.js';
import { traceCreation } from '../telemetry/trace-creation.js';

const common = {
  event_type: Word,
  data: Type.Object({}, { additionalProperties: true, description: 'Sent to the endpoints byte for byte as it stands here.' }),
  custom_headers: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 8192 }), { maxProperties: 100 })),
  idempotency_key: Type.Optional(Word),
};
const SingleEvent = Type.Object({ ...common, endpoint_id: Type.Optional(Id) }, closed);
const FanoutEvent = Type.Object({ ...common, owner_id: Word }, closed);
const BroadcastEvent = Type.Object(common, closed);

const EventQuery = Type.Object(
  {
    ...pageQuery,
    ...spanQuery,
    sourceId: Type.Optional(Id),
    event_type: Type.Optional(Word),
    idempotencyKey: Type.Optional(Word),
    status: Type.Optional(oneOf(['pending', 'processed', 'failed'])),
  },
  closed,
);

function view({ id, accepted_at, headers, data, ...row }: EventRow): unknown {
  return { uid: id, ...row, created_at: accepted_at, headers: new RawJson(headers), data: data === null ? null : new RawJson(data) };
}

export const eventRoutes: readonly Route[] = [
  projectRoute(
    {
      method: 'post',
      path: '/events',
      summary: 'Creates an event for one endpoint, or without endpoint_id for those that subscribe to it.',
      body: SingleEvent,
      raw: 'data',
      status: 201,
    },
    async (call) => {
      const { parts, project, body } = call;
      if (body.endpoint_id !== undefined && !(await findEndpoint(parts.database.knex, project.id, body.endpoint_id))) {
        refuse([{ field: 'endpoint_id', sentence: 'is not an endpoint of this project' }]);
      }
      return create(call, { messageType: 'single', endpointId: body.endpoint_id ?? null, ownerId: null });
    },
  ),
  projectRoute(
    {
      method: 'post',
      path: '/events/fanout',
      createsIn: '/events',
      summary: 'Creates an event for all endpoints of an owner.',
      body: FanoutEvent,
      raw: 'data',
      status: 201,
    },
    async (call) => {
      const { parts, project, body } = call;
      if (!(await ownerExists(parts.database.knex, project.id, body.owner_id)))
        refuse([{ field: 'owner_id', sentence: 'is the owner of no endpoint of this project' }]);
      return create(call, { messageType: 'fanout', endpointId: null, ownerId: body.owner_id });
    },
  ),
  projectRoute(
    {
      method: 'post',
      path: '/events/broadcast',
      createsIn: '/events',
      summary: 'Creates an event for all endpoints of the project.',
      body: BroadcastEvent,
      raw: 'data',
      status: 201,
    },
    (call) => create(call, { messageType: 'broadcast', endpointId: null, ownerId: null }),
  ),
  projectRoute(
    { method: 'get', path: '/events', summary: 'Lists events by the time of their messages.', query: EventQuery },
    async ({ parts, project, query }) => {
      const request = pageRequest(query);
      const { pool } = parts.database;
      // A key within its window names its event, so nothing is looked through for it.
      const known =
        query.idempotencyKey === undefined || request.cursor !== undefined
          ? undefined
          : await eventOfKey(pool, project.id, query.idempotencyKey);
      const page = await listEvents(pool, project.id, { ...query, id: known, eventType: query.event_type, ...span(query) }, request);
      return { message: 'events', data: pageView(page, request, view) };
    },
  ),
  projectRoute({ method: 'get', path: '/events/:id', summary: 'Shows an event.' }, async ({ parts, project, params }) => {
    const { id = '' } = params;
    const row = await findEvent(parts.database.pool, project.id, id);
    if (!row) throw new GatewayError('not_found', { thing: 'event', id });
    return { message: 'event', data: view(row) };
  }),
];

type Given = Static<typeof BroadcastEvent>;

async function create(
  { parts, project, body, raw, headers: requestHeaders }: ProjectCall<Given>,
  route: { messageType: MessageType; endpointId: string | null; ownerId: string | null },
): Promise<Answer> {
  const { custom_headers: custom = {}, event_type: eventType, idempotency_key: idempotencyKey = null } = body;
  const { max_message_bytes: limit, idempotency_window_seconds: windowSeconds } = parts.config.ingest;
  const problems = headerProblems(custom);
  if (Buffer.byteLength(raw) > limit)
    problems.push({ field: 'data', sentence: `has more than ${limit} bytes, which is ingest.max_message_bytes` });
  const headers = travellingHeaders({}, custom);
  const dynamic = route.messageType === 'single' && route.endpointId === null;
  const event = { projectId: project.id, ...route, eventType, idempotencyKey, headers, data: raw };
  const creation = { projectId: project.id, eventType, dynamic, requestHeaders, headers };
  const { id, duplicate } = await traceCreation(parts.plugins, creation, () => {
    refuse(problems);
    return measureIngest(parts.plugins, project.id, () => createEvent(parts.database.pool, event, windowSeconds));
  });
  if (!duplicate) {
    parts.usage.event(event.projectId, raw);
    signal(parts, { projectId: event.projectId, id });
  }
  return duplicate
    ? { status: 200, message: 'an event with this idempotency key is there already', data: { uid: id, duplicate } }
    : { message: 'event created', data: { uid: id, duplicate } };
}

/** Tells the agents, without waiting: an event whose signal is lost is found by the reconciler. */
function signal({ kv, log }: Parts, event: { projectId: string; id: string }): void {
  kv.queue('create-event')
    .push([encodeSignal(event)])
    .catch((error: unknown) => log.debug({ error }, 'KV is away: a created event is routed by the reconciler, a few seconds later.'));
}

function headerProblems(custom: Readonly<Record<string, string>>): InvalidField[] {
  return Object.entries(custom).flatMap(([name, value]) => {
    const field = `custom_headers.${name}`;
    if (name.toLowerCase() === MESSAGE_TYPE_HEADER)
      return [{ field, sentence: 'is decided by the route here: /events, /events/fanout or /events/broadcast' }];
    const sentence = customHeaderProblem(name, value);
    return sentence === undefined ? [] : [{ field, sentence }];
  });
}
