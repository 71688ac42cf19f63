import { nearest } from '@gateway/core/errors';
import {
  explainDeliveries,
  findEventAnywhere,
  findOtherRecords,
  keyExpiry,
  readRoutingBacklog,
  type ExplainedDeliveries,
  type FoundEvent,
  type OtherRecord,
  type Waiting,
} from '@gateway/store/deliveries';
import { readRouting, type RoutingRecords } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import { explainRoute, type ExplainedRoute } from './explain-route.js';
import { routingRule, type RoutingRule } from '../model/routing.js';

export interface Explanation {
  readonly event: FoundEvent;
  readonly rule: RoutingRule;
  readonly deliveries: ExplainedDeliveries;
  /** Where it would go now; null when the row of the project is gone. */
  readonly now: ExplainedRoute | null;
  /** The owner id or endpoint id that an unknown one may have meant. */
  readonly meant: string | null;
  /** The agents that could process it, and what is queued before it. */
  readonly waiting: Waiting;
  /** End of the window in which messages with its idempotency key are duplicates. */
  readonly keyExpiry: Date | null;
  readonly quarantined: string | null;
}

export type Explained = { readonly explanation: Explanation } | { readonly meanings: readonly OtherRecord[] };

const CANDIDATES_MAX = 5_000;

/** Reads a few rows by key. @param id a UUID in lower case */
export async function explainEvent({ pool }: Pick<Database, 'pool'>, id: string): Promise<Explained> {
  const [event, meanings] = await Promise.all([findEventAnywhere(pool, id), findOtherRecords(pool, id)]);
  if (!event) return { meanings };
  const [deliveries, records, waiting, held] = await Promise.all([
    explainDeliveries(pool, event),
    readRouting(pool, event.project_id, event.accepted_at),
    readRoutingBacklog(pool, event.accepted_at),
    event.idempotency_key === null ? null : keyExpiry(pool, event),
  ]);
  const routed = {
    eventType: event.event_type,
    messageType: event.message_type,
    endpointId: event.endpoint_id,
    ownerId: event.owner_id,
    headers: JSON.parse(event.headers) as Record<string, string>,
    data: event.data,
  };
  const now = records ? explainRoute(records, routed) : null;
  const quarantined = meanings.find(({ thing }) => thing === 'quarantined message')?.detail ?? null;
  const meant = records && now ? meantName(records, event, now) : null;
  return { explanation: { event, rule: routingRule(routed), deliveries, now, meant, waiting, keyExpiry: held, quarantined } };
}

function meantName({ endpoints }: RoutingRecords, { endpoint_id, owner_id }: FoundEvent, { outcome }: ExplainedRoute): string | null {
  if (outcome === 'unknown_endpoint') return nearest(endpoint_id!, endpoints.map(({ id }) => id).slice(0, CANDIDATES_MAX)) ?? null;
  if (outcome !== 'unknown_owner') return null;
  return nearest(owner_id!, endpoints.flatMap((it) => it.owner_id ?? []).slice(0, CANDIDATES_MAX)) ?? null;
}
