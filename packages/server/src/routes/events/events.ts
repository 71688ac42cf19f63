import { GatewayError } from '@gateway/core/errors';
import {
  bytesText,
  findEvent,
  findEventMessage,
  listEvents,
  messageOfRow,
  type EventMessage,
  type EventRow,
} from '@gateway/store/events';
import {
  bodyValidator,
  boolean,
  described,
  found,
  Id,
  idQuery,
  int,
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
  searchOf,
  string,
  textQuery,
  timeQuery,
  timeRange,
  Timestamp,
  Type,
  withUid,
  Word,
  type ProjectCall,
  type Route,
} from '../../api/vocabulary.js';
import { assertAlone, Outcomes } from './replay.js';
import { createEvent, createEvents } from './create-event.js';
import { MessageOfEvent } from './message-of-event.js';
import { assertNotScheduled, DeliverAt } from './scheduled-events.js';

const BATCH_MAX = 1_000;

const common = {
  event_type: Word,
  data: Type.Object(
    {},
    {
      additionalProperties: true,
      description: 'Data of the event, sent to endpoints byte for byte.',
    },
  ),
  ...optional({
    custom_headers: Type.Record(string(), Type.String({ maxLength: 8192 }), {
      maxProperties: 100,
    }),
    idempotency_key: Word,
    deliver_at: DeliverAt,
  }),
};
const SingleEvent = namedObject('CreateEvent', { ...common, endpoint_id: Type.Optional(Id) });
const FanoutEvent = namedObject('CreateFanoutEvent', { ...common, owner_id: Word });
const BroadcastEvent = namedObject('CreateBroadcastEvent', common);
const CreatedEvent = namedObject('CreatedEvent', {
  uid: Id,
  duplicate: boolean('Whether an event with this idempotency key existed; `uid` is its id.'),
  deliver_at: Type.Optional(
    described(Timestamp, 'When a scheduled event is delivered; omitted for others.'),
  ),
});
const BatchEvent = object({ ...common, ...optional({ endpoint_id: Id, owner_id: Word }) });
const validateEvent = bodyValidator(BatchEvent);
const BatchEvents = namedObject('CreateEvents', {
  events: Type.Array(BatchEvent, {
    minItems: 1,
    maxItems: BATCH_MAX,
  }),
});
const CreatedEvents = namedObject('CreatedEvents', {
  created: int(),
  duplicates: int(),
  rejected: int(),
  content: Type.Array(
    object(
      optional({
        uid: Id,
        duplicate: boolean(),
        deliver_at: Timestamp,
        errors: Type.Array(object({ field: string(), sentence: string() })),
      }),
    ),
    {
      description:
        'Results in the order of the request: the id of each event, or why it was not created.',
    },
  ),
});
/** A duplicate gets status 200. */
const created = {
  isAudited: false,
  raw: 'data',
  carriesMessage: true,
  createsEvents: true,
  data: CreatedEvent,
  status: 201,
  alsoStatus: [200],
} as const;

const Event = namedObject('Event', {
  uid: Id,
  project_id: Id,
  occurred_at: Timestamp,
  created_at: Timestamp,
  source_id: nullable(string()),
  coordinates: string(
    'Position of the message in its source; `api` for an event created over the API, and `archive/<uid>` for an event sent again from the archive, with the ID that it had.',
  ),
  event_type: string(),
  message_type: oneOf(['single', 'fanout', 'broadcast']),
  endpoint_id: nullable(string()),
  owner_id: nullable(string()),
  idempotency_key: nullable(string()),
  status: oneOf(['pending', 'processed', 'failed']),
  outcome: nullable(
    string(
      'Outcome of routing, listed in docs/reference/errors.md; null while the event is pending.',
    ),
  ),
  headers: Type.Record(string(), string()),
  message: MessageOfEvent,
  notes: Type.Array(string(), {
    description: 'Notes on omitted parts of the event, usually empty.',
  }),
  // Named, because generators make no clients of maps that may be null within an object.
  data: named(
    'EventData',
    nullable(
      Type.Record(string(), Type.Unknown(), {
        description: 'Data of the event; null in lists if larger than 16 KB.',
      }),
    ),
  ),
  data_bytes: int(),
});
const Message = namedObject('EventMessage', {
  uid: Id,
  headers: Type.Record(string(), string()),
  raw: nullable(
    string(),
    'The message as the function of the source received it; null if larger than 64 KB, which is not kept.',
  ),
  raw_encoding: oneOf(['utf8', 'base64']),
  raw_bytes: int(),
});
const ListQuery = object({
  ...pageQuery,
  ...timeQuery,
  ...idQuery,
  ...textQuery,
  ...optional({
    sourceId: Id,
    event_type: Word,
    idempotencyKey: Word,
    status: oneOf(['pending', 'processed', 'failed']),
    outcome: Outcomes,
  }),
});

function view({ accepted_at, headers, data, notes, ...row }: EventRow): unknown {
  const json = (text: string | null) => (text === null ? null : new RawJson(text));
  return {
    ...withUid(row),
    message: messageOfRow(row),
    created_at: accepted_at,
    headers: json(headers),
    data: json(data),
    notes: json(notes) ?? [],
  };
}

function messageView({ id, headers, raw, raw_bytes }: EventMessage): unknown {
  const text = raw ? bytesText(raw) : { raw, raw_encoding: 'utf8' };
  return { uid: id, headers: new RawJson(headers), ...text, raw_bytes };
}

/** Throws `not_found`. */
export async function requireEvent(
  { planes, project, database }: Pick<ProjectCall, 'planes' | 'project' | 'database'>,
  id: string,
): Promise<EventRow> {
  const row = await findEvent(planes.data, project.id, id);
  if (!row) await assertNotScheduled({ project, database }, id);
  return found(row, 'event', id);
}

/** Throws `not_found` if the event does not exist or its message was not kept. */
export async function requireMessage(
  { planes, project, database }: ProjectCall,
  id: string,
): Promise<EventMessage> {
  const message = await findEventMessage(planes.data, project.id, id);
  if (message) return message;
  await requireEvent({ planes, project, database }, id);
  const fix = 'set keep_messages of its source, which keeps the messages of later events';
  throw new GatewayError('not_found', { thing: 'message of the event', id, fix });
}

export const eventRoutes: readonly Route[] = [
  projectRoute(
    'POST /events',
    'Creates an event for one endpoint, or for all subscribed endpoints if `endpoint_id` is omitted.',
    { ...created, body: SingleEvent },
    (call) =>
      createEvent(call, {
        messageType: 'single',
        endpointId: call.body.endpoint_id ?? null,
        ownerId: null,
      }),
  ),
  projectRoute(
    'POST /events/fanout',
    'Creates an event for all endpoints of an owner.',
    { ...created, createsIn: '/events', body: FanoutEvent },
    (call) =>
      createEvent(call, { messageType: 'fanout', endpointId: null, ownerId: call.body.owner_id }),
  ),
  projectRoute(
    'POST /events/broadcast',
    'Creates an event for all endpoints of the project.',
    { ...created, createsIn: '/events', body: BroadcastEvent },
    (call) => createEvent(call, { messageType: 'broadcast', endpointId: null, ownerId: null }),
  ),
  projectRoute(
    'POST /events/batch',
    'Creates up to 1,000 events and returns a result for each; invalid events are skipped. They are committed in several steps: after an error, repeat the request with the same idempotency keys.',
    {
      isAudited: false,
      body: BatchEvents,
      raw: 'events',
      each: 'events',
      carriesMessage: true,
      createsEvents: true,
      data: CreatedEvents,
      name: 'createBatch',
    },
    (call) => createEvents(call, validateEvent),
  ),
  listRoute(
    '/events',
    'Lists events by the time of their messages. A search takes up to 1 s; `searched_to` shows how far it got.',
    { query: ListQuery, title: 'events', data: Event, isSearched: true },
    ({ read, project, query, request, limits }, page) => {
      const { outcome: outcomes, event_type: eventType, query: idPrefix, ...rest } = query;
      if (query.idempotencyKey === undefined) assertAlone(query);
      const search = searchOf(query);
      const filter = { ...rest, outcomes, eventType, idPrefix, search, ...timeRange(query) };
      const list = (options?: Parameters<typeof listEvents>[4]) =>
        read((planes) => listEvents(planes, project.id, filter, page, options));
      if (!search) return list();
      const isWanted = () => !request.socket.destroyed;
      return limits.longReads(project.id, () => list({ isWanted }));
    },
    view,
  ),
  projectItem(
    'GET /events/:id',
    'Shows an event.',
    { thing: 'event', data: Event },
    (call) => requireEvent(call, call.id),
    view,
  ),
  projectItem(
    'GET /events/:id/message',
    'Shows the message that an event was created from, if its source keeps messages or it was replayed from quarantine. Several events can share one message.',
    { thing: 'message of an event', data: Message, name: 'getMessage' },
    (call) => requireMessage(call, call.id),
    messageView,
  ),
];
