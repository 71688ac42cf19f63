import { Type } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core/errors';
import { explainEvent, explanationRecord, type OtherRecord } from '@gateway/store/explain';
import { projectRoute, type Route } from '../api/route.js';
import {
  described,
  Id,
  named,
  nullable,
  object,
  oneOf,
  optional,
  Timestamp,
} from '../http/schema.js';

const SUBSCRIPTIONS_MAX = 100;

const Text = nullable(Type.String());
export const Mismatch = object({
  part: oneOf(['deleted', 'disabled', 'endpoint', 'event_types', 'headers', 'body', 'filter'], {
    description:
      'What does not match; `endpoint`: its endpoint was deleted, or has an owner and gets no operational events; `filter`: its filter cannot be used.',
  }),
  ...optional({
    path: Type.String({ description: 'Where in the headers or the body, with dots.' }),
    operator: Type.String(),
    wanted: Type.Unknown({
      description: 'By the filter, or the event types of the subscription. Cut when it is long.',
    }),
    found: Type.Unknown({
      description: 'In the event; left out when there is nothing. Cut when it is long.',
    }),
    sentence: Type.String(),
  }),
});
const Delivery = object({
  uid: Id,
  endpoint_id: Id,
  endpoint_name: Text,
  endpoint_url: Text,
  endpoint_status: Text,
  endpoint_status_reason: Text,
  subscription_id: Text,
  status: Type.String(),
  attempts: Type.Integer(),
  recovered: Type.Integer(),
  next_attempt_at: nullable(Timestamp),
  held: Type.Boolean({ description: 'It has no time because its endpoint is paused.' }),
  reason: Text,
  updated_at: Timestamp,
  attempted_at: nullable(Timestamp),
  http_status: nullable(Type.Integer()),
  error_class: Text,
  error: Text,
});
const EventExplanation = named(
  'EventExplanation',
  object({
    event: object({
      uid: Id,
      project_id: Id,
      project_name: Type.String(),
      source_id: Text,
      source_name: Text,
      coordinates: Type.String(),
      occurred_at: Timestamp,
      accepted_at: Timestamp,
      event_type: Type.String(),
      message_type: oneOf(['single', 'fanout', 'broadcast']),
      endpoint_id: Text,
      owner_id: Text,
      idempotency_key: Text,
      idempotency_key_held_until: nullable(Timestamp),
      status: oneOf(['pending', 'processed', 'failed']),
      outcome: Text,
      sentence: nullable(
        Type.String({ description: 'The outcome in words; null while the event is pending.' }),
      ),
      notes: Type.Array(Type.String()),
      quarantine_status: nullable(
        Type.String({ description: 'Of its message, when that was quarantined first.' }),
      ),
      message_bytes: nullable(
        Type.Integer({
          description:
            'Of its message, which `GET /events/:id/message` shows; null when none is stored.',
        }),
      ),
    }),
    rule: oneOf(['broadcast', 'endpoint_id', 'owner_id', 'subscriptions'], {
      description: 'What decides where the event goes.',
    }),
    rule_sentence: Type.String(),
    meant: nullable(
      Type.String({
        description:
          'An endpoint or owner of the project that is named nearly as the event names it.',
      }),
    ),
    agents: Type.Integer({ description: 'Agents that run now.' }),
    pending_before: nullable(
      Type.Integer({
        description: 'Pending events that were accepted earlier, counted up to 1,000.',
      }),
    ),
    delivery_counts: Type.Record(Type.String(), Type.Integer(), { description: 'By status.' }),
    deliveries: Type.Array(Delivery, { description: 'The first 100, successful ones last.' }),
    subscriptions: Type.Array(
      object({
        uid: Id,
        name: Type.String(),
        endpoint_id: Id,
        matches: Type.Boolean(),
        mismatch: nullable(Mismatch, 'Why it does not match; null when it does.'),
        changed_since: Type.Boolean({
          description: 'It was changed or deleted after the event was accepted.',
        }),
      }),
      {
        description: `As they are now, when they decide: up to ${SUBSCRIPTIONS_MAX}, those that match first.`,
      },
    ),
    subscription_count: Type.Integer({ description: 'Of which `subscriptions` shows some.' }),
    now: nullable(
      object(
        {
          outcome: Type.String(),
          sentence: Type.String(),
          endpoint_ids: Type.Array(Id, { description: 'The first 1,000.' }),
          endpoint_count: Type.Integer(),
        },
        {
          description:
            'Where the event would go with the current configuration; with endpointId by the subscriptions of that endpoint. Null when more than 1,000 subscriptions may match: give endpointId.',
        },
      ),
    ),
  }),
);
const ExplainQuery = object({
  endpointId: Type.Optional(described(Id, 'Only subscriptions of this endpoint.')),
});

export const explainRoutes: readonly Route[] = [
  projectRoute(
    'GET /events/:id/explain',
    'Explains why an event went to these endpoints and not to others: the rule, its deliveries, and each subscription that does not match.',
    { query: ExplainQuery, data: EventExplanation, name: 'explain' },
    async ({ database: { pool }, project, id, query: { endpointId } }) => {
      const explained = await explainEvent(pool, id, {
        projectId: project.id,
        ofEndpoint: endpointId ?? null,
        max: SUBSCRIPTIONS_MAX,
      });
      if ('meanings' in explained) throw unknownEvent(id, explained.meanings);
      const { agents, deliveries, ...record } = explanationRecord(explained.explanation);
      // Agents belong to the instance, not to the project, so only their number is shown.
      const data = {
        ...record,
        agents: agents.length,
        deliveries: deliveries.map(({ claimed_by: _, agent_name: _name, ...it }) => it),
      };
      return { message: 'explanation', data };
    },
  ),
];

function unknownEvent(id: string, [other]: readonly OtherRecord[]): GatewayError {
  const fix =
    other?.thing === 'event delivery'
      ? `the id is that of an event delivery; its event is ${other.detail}`
      : other?.thing === 'quarantined message'
        ? `the id is that of a message that is ${other.detail}; GET /quarantine/${id} shows why`
        : undefined;
  return new GatewayError('not_found', { thing: 'event', id, ...(fix && { fix }) });
}
