import { Type } from '@sinclair/typebox';
import { findEndpoint, findEventType, listEventTypes, ownerExists } from '@gateway/store/config';
import { findEvent, listEvents, type EventRow } from '@gateway/store/events';
import { found, listRoute, projectRoute, withUid, type Route } from '../api/route.js';
import { pageQuery, timeQuery, timeRange } from '../http/list-query.js';
import { RawJson } from '../http/response.js';
import { object, Id, oneOf, Word } from '../http/schema.js';
import { assertValid } from '../http/validate.js';
import { createEvent } from './create-event.js';

const common = {
  event_type: Word,
  data: Type.Object({}, { additionalProperties: true, description: 'Sent to the endpoints byte for byte as it stands here.' }),
  custom_headers: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 8192 }), { maxProperties: 100 })),
  idempotency_key: Type.Optional(Word),
};
const SingleEvent = object({ ...common, endpoint_id: Type.Optional(Id) });
const FanoutEvent = object({ ...common, owner_id: Word });
const BroadcastEvent = object(common);

const ListQuery = object({
  ...pageQuery,
  ...timeQuery,
  sourceId: Type.Optional(Id),
  event_type: Type.Optional(Word),
  idempotencyKey: Type.Optional(Word),
  status: Type.Optional(oneOf(['pending', 'processed', 'failed'])),
});

function view({ id, accepted_at, headers, data, ...row }: EventRow): unknown {
  return { uid: id, ...row, created_at: accepted_at, headers: new RawJson(headers), data: data === null ? null : new RawJson(data) };
}

export const eventRoutes: readonly Route[] = [
  projectRoute(
    'POST /events',
    'Creates an event for one endpoint, or without endpoint_id for those that subscribe to it.',
    { body: SingleEvent, raw: 'data', status: 201 },
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
    { createsIn: '/events', body: FanoutEvent, raw: 'data', status: 201 },
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
    { createsIn: '/events', body: BroadcastEvent, raw: 'data', status: 201 },
    (call) => createEvent(call, { messageType: 'broadcast', endpointId: null, ownerId: null }),
  ),
  listRoute(
    '/events',
    'Lists events by the time of their messages.',
    { query: ListQuery, title: 'events' },
    ({ database: { pool }, project, query }, page) =>
      listEvents(pool, project.id, { ...query, eventType: query.event_type, ...timeRange(query) }, page),
    view,
  ),
  projectRoute('GET /events/:id', 'Shows an event.', {}, async ({ database, project, id }) => {
    const row = found(await findEvent(database.pool, project.id, id), 'event', id);
    return { message: 'event', data: view(row) };
  }),
];

export const eventTypeRoutes: readonly Route[] = [
  listRoute(
    '/event-types',
    'Lists the event types that were imported from OpenAPI documents.',
    { query: object({ ...pageQuery, name: Type.Optional(Word) }), title: 'event types' },
    ({ database, project, query }, page) => listEventTypes(database.knex, project.id, query, page),
    withUid,
  ),
  projectRoute('GET /event-types/:id', 'Shows an event type with its schema.', {}, async ({ database, project, id }) => {
    const row = found(await findEventType(database.knex, project.id, id), 'event type', id);
    return { message: 'event type', data: withUid(row) };
  }),
];
