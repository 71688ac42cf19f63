import { GatewayError } from '@gateway/core/errors';
import type { OtherRecord } from '@gateway/store/deliveries';
import { explainEvent } from '../explain/explain-event.js';
import { assertNotScheduled } from './events/scheduled-events.js';
import {
  boolean,
  described,
  Id,
  int,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  projectRoute,
  string,
  Timestamp,
  Type,
  type Route,
} from '../api/vocabulary.js';
import { MessageOfEvent } from './events/message-of-event.js';

const SUBSCRIPTIONS_MAX = 100;

const Text = nullable(string());
export const Mismatch = object({
  part: oneOf(
    ['deleted', 'disabled', 'endpoint', 'event_types', 'headers', 'body', 'message', 'filter'],
    'The part that does not match. `endpoint`: the endpoint was deleted, or has an owner and gets no operational events. `filter`: the filter is invalid.',
  ),
  ...optional({
    path: string('Path in the headers, the body or the message, separated by dots.'),
    operator: string(),
    wanted: Type.Unknown({
      description: 'Value required by the filter or the event types. Long values are truncated.',
    }),
    found: Type.Unknown({
      description: 'Value in the event; omitted if there is none. Long values are truncated.',
    }),
  }),
  sentence: string('Why it does not match, as a clause.'),
});
const Delivery = object({
  uid: Id,
  endpoint_id: Id,
  endpoint_name: Text,
  endpoint_url: Text,
  endpoint_status: Text,
  endpoint_status_reason: Text,
  subscription_id: Text,
  status: string(),
  attempts: int(),
  recovered: int(),
  next_attempt_at: nullable(Timestamp),
  held: boolean('Whether the delivery is held because its endpoint is paused.'),
  reason: Text,
  order_key: nullable(Id, 'Digest of the key by which it is ordered; null if it is not.'),
  waits_for_delivery_id: nullable(
    Id,
    'The delivery with the same key that comes first; null unless this one waits for its turn.',
  ),
  parked_at: nullable(Timestamp, 'When that key was parked; null if it is not.'),
  updated_at: Timestamp,
  attempted_at: nullable(Timestamp),
  http_status: nullable(int()),
  error_class: Text,
  error: Text,
});
const EventExplanation = namedObject('EventExplanation', {
  event: object({
    uid: Id,
    project_id: Id,
    project_name: string(),
    source_id: Text,
    source_name: Text,
    coordinates: string(),
    message: MessageOfEvent,
    occurred_at: Timestamp,
    accepted_at: Timestamp,
    event_type: string(),
    message_type: oneOf(['single', 'fanout', 'broadcast']),
    endpoint_id: Text,
    owner_id: Text,
    idempotency_key: Text,
    idempotency_key_held_until: nullable(Timestamp),
    status: oneOf(['pending', 'processed', 'failed']),
    outcome: Text,
    sentence: nullable(string('The outcome as a sentence; null while the event is pending.')),
    notes: Type.Array(string()),
    quarantine_status: nullable(
      string('Quarantine status of its message, if it was quarantined first.'),
    ),
    message_bytes: nullable(
      int(
        'Size of the stored message, which `GET /events/:id/message` returns; null if none is stored.',
      ),
    ),
  }),
  rule: oneOf(
    ['broadcast', 'endpoint_id', 'owner_id', 'subscriptions'],
    'The rule that decides where the event goes.',
  ),
  rule_sentence: string(),
  meant: nullable(
    string(
      'An endpoint or owner of the project with a similar name, if the event names an unknown one.',
    ),
  ),
  agents: int('Number of running agents.'),
  pending_before: nullable(int('Pending events accepted before this one, counted up to 1,000.')),
  delivery_counts: Type.Record(string(), int(), {
    description: 'Number of deliveries by status.',
  }),
  deliveries: Type.Array(Delivery, {
    description: 'Up to 100 deliveries, successful ones last.',
  }),
  subscriptions: Type.Array(
    object({
      uid: Id,
      name: string(),
      endpoint_id: Id,
      matches: boolean(),
      mismatch: nullable(Mismatch, 'Why the subscription does not match; null if it matches.'),
      changed_since: boolean(
        'Whether the subscription was changed or deleted after the event was accepted.',
      ),
    }),
    {
      description: `Current subscriptions, if the rule uses them: up to ${SUBSCRIPTIONS_MAX}, matching ones first.`,
    },
  ),
  subscription_count: int('Number of all subscriptions, including those not in `subscriptions`.'),
  now: nullable(
    object(
      {
        outcome: string(),
        sentence: string(),
        endpoint_ids: Type.Array(Id, { description: 'Up to 1,000 endpoints.' }),
        endpoint_count: int(),
      },
      {
        description:
          'Current routing of the event: with the current configuration, or with the subscriptions of `endpointId` if given. Null if more than 1,000 subscriptions may match and `endpointId` is not given.',
      },
    ),
  ),
});
const ExplainQuery = object({
  endpointId: Type.Optional(described(Id, 'Explains only the subscriptions of this endpoint.')),
});

export const explainRoutes: readonly Route[] = [
  projectRoute(
    'GET /events/:id/explain',
    'Explains the routing of an event: the rule that applied, its deliveries, and why other subscriptions do not match.',
    { query: ExplainQuery, data: EventExplanation, name: 'explain' },
    async ({ planes, project, database, id, query: { endpointId } }) => {
      const bounds = {
        projectId: project.id,
        ofEndpoint: endpointId ?? null,
        max: SUBSCRIPTIONS_MAX,
      };
      const explained = await explainEvent(planes, id, bounds);
      if (explained.meanings) {
        await assertNotScheduled({ project, database }, id);
        throw unknownEvent(id, explained.meanings);
      }
      return { message: 'explanation', data: explained.explanation };
    },
  ),
];

function unknownEvent(id: string, [other]: readonly OtherRecord[]): GatewayError {
  if (!other) {
    const fix =
      'check the id and the project. A message with the idempotency key of another event creates no event, one that its function drops is not stored, and events are deleted after their retention';
    return new GatewayError('not_found', { thing: 'event', id, fix });
  }
  const { thing, detail } = other;
  const unknown = (sentence: string, fix: string) =>
    new GatewayError('event_unknown', { sentence: `${id} is ${sentence}`, fix });
  switch (thing) {
    case 'event delivery':
      return unknown(
        `an event delivery of the event ${detail}`,
        `run \`gateway utils explain ${detail}\`, or GET /events/${detail}/explain`,
      );
    case 'quarantined message':
      return unknown(
        `a quarantined message${detail === 'quarantined' ? '' : ` that is now ${detail}`}, not an event`,
        `run \`gateway utils quarantine show ${id}\`, or GET /quarantine/${id}`,
      );
    default:
      return unknown(`the ${thing} ${detail}, not an event`, 'give the id of an event');
  }
}
