import type { Pool } from 'pg';
import { nearest } from '@gateway/core/errors';
import { routingRule, type RoutingRule } from '@gateway/core/routing';
import { readRoutingPart, type RoutingPart } from '../config/routing-records.js';
import { eventMessageBytes } from '../events/kept-messages.js';
import type { Planes } from '../postgres/planes.js';
import {
  explainDeliveries,
  findEventWithNames,
  findOtherRecords,
  keyExpiry,
  readRoutingBacklog,
  type ExplainedDeliveries,
  type FoundEvent,
  type OtherRecord,
  type RoutingBacklog,
} from './event-facts.js';
import { explainRoute, type ExplainedRoute } from './explain-route.js';

export interface Explanation {
  readonly event: FoundEvent;
  readonly rule: RoutingRule;
  readonly deliveries: ExplainedDeliveries;
  /** The route that the event would take now. Null if the project's row no longer exists. */
  readonly now: ExplainedRoute | null;
  /** Totals for the project. `now` may cover only part of it. */
  readonly counts: Pick<RoutingPart, 'subscriptionCount' | 'endpointCount' | 'isWhole'>;
  /** The known owner or endpoint id most similar to an unknown one in the event. */
  readonly meant: string | null;
  readonly waiting: RoutingBacklog;
  /**
   * Until then, messages with the event's idempotency key are duplicates. Null if it has expired.
   */
  readonly keyExpiry: Date | null;
  readonly quarantined: string | null;
  /** The size of the source message. Null if none is stored. */
  readonly messageBytes: number | null;
}

type EventOrOthers =
  { readonly explanation: Explanation } | { readonly meanings: readonly OtherRecord[] };

const CANDIDATES_MAX = 1_000;

/** These bound the work, regardless of the project's size. */
export interface ExplainBounds {
  readonly projectId: string;
  /** Unless null, explains only subscriptions of this endpoint. */
  readonly ofEndpoint: string | null;
  readonly max: number;
}

/** Endpoints, and subscriptions that can match, to read. */
const PART_MAX = 1_000;

/**
 * Reads rows by key and the project's configuration. Without such an event, returns the other
 * records with this id.
 *
 * @param id a lower-case UUID
 */
export async function explainEvent(
  planes: Planes,
  id: string,
  bounds: ExplainBounds,
): Promise<EventOrOthers> {
  const { projectId } = bounds;
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
    headers: JSON.parse(event.headers) as Record<string, string>,
    data: event.data,
  };
  const rule = routingRule(routed);
  const [deliveries, records, waiting, held, messageBytes] = await Promise.all([
    explainDeliveries(planes, event),
    readPart(control, event, { ...bounds, rule }),
    readRoutingBacklog(data, event.accepted_at),
    event.idempotency_key === null ? null : keyExpiry(data, event),
    event.source_id === null ? null : eventMessageBytes(data, event.project_id, event.id),
  ]);
  const now = records ? explainRoute(records, routed, bounds.max) : null;
  const quarantined = meanings.find(({ thing }) => thing === 'quarantined message')?.detail ?? null;
  const meant = records && now ? meantName(records, event, now) : null;
  const counts = countsOf(records, now);
  return {
    explanation: {
      event,
      rule,
      deliveries,
      now,
      counts,
      meant,
      waiting,
      keyExpiry: held,
      quarantined,
      messageBytes,
    },
  };
}

function readPart(
  pool: Pool,
  {
    event_type: eventType,
    endpoint_id: endpointId,
    owner_id: ownerId,
    accepted_at: deletedSince,
  }: FoundEvent,
  { max, ...options }: ExplainBounds & { readonly rule: RoutingRule },
): Promise<RoutingPart | undefined> {
  return readRoutingPart(pool, {
    ...options,
    eventType,
    endpointId,
    ownerId,
    deletedSince,
    max: PART_MAX,
    othersMax: max,
  });
}

function countsOf(
  records: RoutingPart | undefined,
  now: ExplainedRoute | null,
): Explanation['counts'] {
  if (!records || !now) return { subscriptionCount: 0, endpointCount: 0, isWhole: true };
  const { subscriptionCount, endpointCount, isWhole } = records;
  return {
    subscriptionCount,
    endpointCount: now.rule === 'subscriptions' ? now.targets.length : endpointCount,
    isWhole,
  };
}

function meantName(
  { endpoints }: RoutingPart,
  { endpoint_id, owner_id }: FoundEvent,
  { outcome }: ExplainedRoute,
): string | null {
  if (outcome === 'unknown_endpoint')
    return nearest(endpoint_id!, endpoints.map(({ id }) => id).slice(0, CANDIDATES_MAX)) ?? null;
  if (outcome !== 'unknown_owner') return null;
  return (
    nearest(owner_id!, endpoints.flatMap((it) => it.owner_id ?? []).slice(0, CANDIDATES_MAX)) ??
    null
  );
}
