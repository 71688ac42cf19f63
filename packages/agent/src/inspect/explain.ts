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
import { readRouting, type RoutingRecords, type NamedEndpoint, type NamedSubscription } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import { compileFilter, FilterBudget, memberAt } from '@gateway/core/events';
import { isObject } from '@gateway/core/json';
import { routingRule, type RoutingRule, type RoutingOutcome } from '../model/routing.js';
import { lowerNames, projectOf } from '../config/project.js';
import { matchesType, type RoutableEvent, route } from '../routing/plan-deliveries.js';

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

type Explained = { readonly explanation: Explanation } | { readonly meanings: readonly OtherRecord[] };

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

export interface ExplainedTarget {
  readonly endpoint: NamedEndpoint;
  readonly subscription: NamedSubscription | null;
}

/** A subscription of the project and why it does not match; `mismatch` is null when it does. */
export interface ExplainedSubscription {
  readonly subscription: NamedSubscription;
  readonly endpoint: NamedEndpoint | null;
  readonly mismatch: SubscriptionMismatch | null;
}

export type SubscriptionMismatch =
  | { readonly part: 'deleted' }
  | { readonly part: 'endpoint' }
  | { readonly part: 'event_types'; readonly wanted: readonly string[]; readonly found: string }
  | ({ readonly part: 'headers' | 'body' } & FilterMismatch)
  /** Its filter does not compile, so it matches nothing. */
  | { readonly part: 'filter'; readonly sentence: string };

export interface ExplainedRoute {
  readonly rule: RoutingRule;
  readonly outcome: RoutingOutcome;
  readonly targets: readonly ExplainedTarget[];
  /** All of the project when subscriptions decide; empty for a deleted project. */
  readonly subscriptions: readonly ExplainedSubscription[];
}

/** Routes an event as an agent would now, and explains each subscription. */
export function explainRoute(records: RoutingRecords, event: RoutableEvent): ExplainedRoute {
  const data: unknown = JSON.parse(event.data);
  const endpoints = new Map(records.endpoints.map((it) => [it.id, it]));
  const live = records.subscriptions.filter(({ deleted_at }) => deleted_at === null);
  const subscriptions = new Map(live.map((it) => [it.id, it]));
  const project = records.project.deleted_at === null ? projectOf(records.project, records.endpoints, live, () => undefined) : undefined;
  const { outcome, targets } = route(project, event);
  const rule = routingRule(event);
  return {
    rule,
    outcome,
    targets: targets.map(({ endpoint, subscriptionId }) => ({
      endpoint: endpoints.get(endpoint.id)!,
      subscription: subscriptionId === null ? null : subscriptions.get(subscriptionId)!,
    })),
    subscriptions:
      project && rule === 'subscriptions'
        ? records.subscriptions.map((subscription) => {
            const endpoint = endpoints.get(subscription.endpoint_id) ?? null;
            return { subscription, endpoint, mismatch: mismatchOf(subscription, endpoint, event, data) };
          })
        : [],
  };
}

function mismatchOf(
  subscription: NamedSubscription,
  endpoint: NamedEndpoint | null,
  event: RoutableEvent,
  data: unknown,
): SubscriptionMismatch | null {
  const { event_types: patterns, filter, deleted_at } = subscription;
  if (deleted_at !== null) return { part: 'deleted' };
  if (!patterns.some((pattern) => matchesType(pattern, event.eventType))) {
    return { part: 'event_types', wanted: patterns, found: event.eventType };
  }
  try {
    const headers = filterMismatch(lowerNames(filter?.headers ?? {}), event.headers);
    if (headers) return { part: 'headers', ...headers };
    const body = filterMismatch(filter?.body ?? {}, data);
    if (body) return { part: 'body', ...body };
  } catch (error) {
    return { part: 'filter', sentence: (error as Error).message };
  }
  return endpoint ? null : { part: 'endpoint' };
}

interface FilterMismatch {
  /** Where in the value, with dots: `order.amount`; empty for the value itself. */
  readonly path: string;
  readonly operator: string;
  /** What the filter wants of it; of `$or` the alternatives, none of which holds. */
  readonly wanted: unknown;
  readonly found: unknown;
}

/** Why a filter does not match a value; undefined when it does. Throws for a filter that cannot be compiled. */
export function filterMismatch(document: Readonly<Record<string, unknown>>, value: unknown, at = ''): FilterMismatch | undefined {
  if (compileFilter(document)(value, new FilterBudget())) return undefined;
  for (const [name, operand] of Object.entries(document)) {
    if (compileFilter({ [name]: operand })(value, new FilterBudget())) continue;
    if (name === '$and') return (operand as Record<string, unknown>[]).map((it) => filterMismatch(it, value, at)).find(Boolean);
    if (name.startsWith('$')) return { path: at, operator: name, wanted: operand, found: value };
    const path = at === '' ? name : `${at}.${name}`;
    const found = memberAt(value, name.split('.'));
    return isObject(operand) ? filterMismatch(operand, found, path) : { path, operator: '$eq', wanted: operand, found };
  }
  return undefined;
}
