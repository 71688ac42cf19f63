import type { Pool } from 'pg';
import { nearest } from '@gateway/core/errors';
import { routingRule, type RoutingRule } from '@gateway/core/routing';
import { readRouting, readRoutingPart, type RoutingPart } from '../config/routing-records.js';
import type { RoutingRecords } from '../config/routing-records.js';
import { eventMessageBytes } from '../events/kept-messages.js';
import {
  explainDeliveries,
  findEventAnywhere,
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
  /** Null when the project's row no longer exists. */
  readonly now: ExplainedRoute | null;
  /** Totals of the project; `now` can cover a part. */
  readonly counts: Pick<RoutingPart, 'subscriptionCount' | 'endpointCount' | 'isWhole'>;
  /** The known owner or endpoint id nearest to an unknown one. */
  readonly meant: string | null;
  readonly waiting: RoutingBacklog;
  /** End of the window in which messages with its idempotency key are duplicates. */
  readonly keyExpiry: Date | null;
  readonly quarantined: string | null;
  /** Null when no source message is stored. */
  readonly messageBytes: number | null;
}

type EventOrOthers =
  { readonly explanation: Explanation } | { readonly meanings: readonly OtherRecord[] };

const CANDIDATES_MAX = 1_000;

/** Bounds the work, however large the project is. */
export interface ExplainBounds {
  readonly projectId: string;
  /** Only subscriptions of this endpoint. */
  readonly ofEndpoint: string | null;
  readonly max: number;
}

/** Limit of endpoints, and of subscriptions that can match, read with bounds. */
const PART_MAX = 1_000;

/**
 * Explains an event from rows read by key and its project's configuration; otherwise returns the
 * other records with this id.
 *
 * @param id a UUID in lower case
 * @param bounds default: any project, unbounded
 */
export async function explainEvent(
  pool: Pool,
  id: string,
  bounds?: ExplainBounds,
): Promise<EventOrOthers> {
  const projectId = bounds?.projectId ?? null;
  const [event, meanings] = await Promise.all([
    findEventAnywhere(pool, id, projectId),
    findOtherRecords(pool, id, projectId),
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
    explainDeliveries(pool, event),
    bounds
      ? readPart(pool, event, { ...bounds, rule })
      : readRouting(pool, event.project_id, event.accepted_at),
    readRoutingBacklog(pool, event.accepted_at),
    event.idempotency_key === null ? null : keyExpiry(pool, event),
    event.source_id === null ? null : eventMessageBytes(pool, event.project_id, event.id),
  ]);
  const now = records ? explainRoute(records, routed, bounds?.max) : null;
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
  records: RoutingRecords | RoutingPart | undefined,
  now: ExplainedRoute | null,
): Explanation['counts'] {
  const targets = now?.targets.length ?? 0;
  if (!records || !('isWhole' in records))
    return {
      subscriptionCount: records?.subscriptions.length ?? 0,
      endpointCount: targets,
      isWhole: true,
    };
  const { subscriptionCount, endpointCount, isWhole } = records;
  return {
    subscriptionCount,
    endpointCount: now?.rule === 'subscriptions' ? targets : endpointCount,
    isWhole,
  };
}

function meantName(
  { endpoints }: RoutingRecords,
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
