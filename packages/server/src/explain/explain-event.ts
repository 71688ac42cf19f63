import { timeOfId } from '@gateway/core/events';
import { nearest } from '@gateway/core/errors';
import { maskUrls } from '@gateway/core/logging';
import { routingRule, ruleSentences, sentenceOf } from '@gateway/core/routing';
import { readRoutingPart, type RoutingPart } from '@gateway/store/config';
import {
  explainDeliveries,
  findEventWithNames,
  findOtherRecords,
  keyExpiry,
  readRoutingBacklog,
  type FoundEvent,
} from '@gateway/store/deliveries';
import { eventMessageBytes, messageOfRow } from '@gateway/store/events';
import type { Planes } from '@gateway/store/postgres';
import {
  clipper,
  explainRoute,
  subscriptionRecord,
  type ExplainedRoute,
  type ExplainedSubscription,
} from './explain-route.js';

const CANDIDATES_MAX = 1_000;
/** Endpoints, and subscriptions that can match, to read. */
const PART_MAX = 1_000;

/** These bound the work, regardless of the project's size. */
export interface ExplainBounds {
  readonly projectId: string;
  /** Unless null, explains only subscriptions of this endpoint. */
  readonly ofEndpoint: string | null;
  readonly max: number;
}

/**
 * Reads rows by key and the project's configuration. Without such an event, returns the other
 * records with this id.
 *
 * @param id a lower-case UUID
 */
export async function explainEvent(
  planes: Planes,
  id: string,
  { projectId, ofEndpoint, max }: ExplainBounds,
) {
  const { control, data } = planes;
  const [event, meanings] = await Promise.all([
    findEventWithNames(planes, projectId, id),
    findOtherRecords(planes, projectId, id),
  ]);
  if (!event) return { meanings };
  const routed = {
    eventType: event.event_type,
    messageType: event.message_type,
    endpointId: event.endpoint_id,
    ownerId: event.owner_id,
    sourceId: event.source_id,
    coordinates: event.coordinates,
    occurredAtMs: timeOfId(event.id),
    message: event.message,
    headers: JSON.parse(event.headers) as Record<string, string>,
    data: event.data,
  };
  const rule = routingRule(routed);
  const [deliveries, records, waiting, keptUntil, messageBytes] = await Promise.all([
    explainDeliveries(planes, event),
    readRoutingPart(control, {
      projectId,
      ofEndpoint,
      rule,
      eventType: event.event_type,
      endpointId: event.endpoint_id,
      ownerId: event.owner_id,
      deletedSince: event.accepted_at,
      max: PART_MAX,
      othersMax: max,
    }),
    readRoutingBacklog(data, event.accepted_at),
    event.idempotency_key === null ? null : keyExpiry(data, event),
    event.source_id === null ? null : eventMessageBytes(data, event.project_id, event.id),
  ]);
  // Without records, the project's row no longer exists.
  const now = records && explainRoute(records, routed, max);
  const { id: uid, data: _data, data_bytes: _bytes, headers: _headers, ...shown } = event;
  const quarantined = meanings.find(({ thing }) => thing === 'quarantined message');
  const clip = clipper();
  const explanation = {
    event: {
      uid,
      ...shown,
      idempotency_key_held_until: keptUntil,
      message: messageOfRow(event),
      notes: JSON.parse(event.notes ?? '[]') as string[],
      sentence: event.outcome === null ? null : sentenceOf(event.outcome),
      quarantine_status: quarantined?.detail ?? null,
      message_bytes: messageBytes,
    },
    rule,
    rule_sentence: ruleSentences[rule],
    meant: records && now ? meantName(records, event, now) : null,
    // Agents belong to the instance, not to the project, so only their number is shown.
    agents: waiting.agents.length,
    pending_before: event.outcome === null ? waiting.before : null,
    delivery_counts: deliveries.counts,
    deliveries: deliveries.first.map(
      ({ id: ofDelivery, endpoint_url, next_attempt_at, ...it }) => ({
        uid: ofDelivery,
        ...it,
        endpoint_url: endpoint_url && maskUrls(endpoint_url),
        next_attempt_at: next_attempt_at instanceof Date ? next_attempt_at : null,
        held: typeof next_attempt_at === 'number',
      }),
    ),
    subscriptions: (now?.subscriptions ?? []).map((it) => ({
      ...subscriptionRecord(it, clip),
      endpoint_id: it.subscription.endpoint_id,
      changed_since: isChanged(it.subscription, event.accepted_at),
    })),
    subscription_count: records?.subscriptionCount ?? 0,
    now:
      now && records.isWhole
        ? {
            outcome: now.outcome,
            sentence: sentenceOf(now.outcome),
            endpoint_ids: now.targets.map(({ endpoint }) => endpoint.id),
            endpoint_count:
              now.rule === 'subscriptions' ? now.targets.length : records.endpointCount,
          }
        : null,
  };
  return { explanation };
}

/** The known owner or endpoint id most similar to an unknown one in the event. */
function meantName(
  { endpoints }: RoutingPart,
  { endpoint_id, owner_id }: FoundEvent,
  { outcome }: ExplainedRoute,
): string | null {
  const [name, known] =
    outcome === 'unknown_endpoint'
      ? [endpoint_id, endpoints.map(({ id }) => id)]
      : outcome === 'unknown_owner'
        ? [owner_id, endpoints.flatMap((it) => it.owner_id ?? [])]
        : [null, []];
  return name === null ? null : (nearest(name, known.slice(0, CANDIDATES_MAX)) ?? null);
}

/** Changed or deleted after the event was accepted. */
function isChanged(
  { updated_at, deleted_at }: ExplainedSubscription['subscription'],
  acceptedAt: Date,
): boolean {
  return updated_at > acceptedAt || (deleted_at !== null && deleted_at > acceptedAt);
}
