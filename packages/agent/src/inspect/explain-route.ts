import { compileFilter, memberAt } from '@gateway/core/events';
import { isObject } from '@gateway/core/json';
import type { NamedEndpoint, NamedSubscription, RoutingRecords } from '@gateway/store/config';
import { lowerNames, projectOf } from '../config/config-cache.js';
import { type RoutingOutcome, routingRule, type RoutingRule } from '../model/routing.js';
import { matchesType, type RoutableEvent, route } from '../routing/plan-deliveries.js';

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

export interface FilterMismatch {
  /** Where in the value, with dots: `order.amount`; empty for the value itself. */
  readonly path: string;
  readonly operator: string;
  /** What the filter wants of it; of `$or` the alternatives, none of which holds. */
  readonly wanted: unknown;
  readonly found: unknown;
}

/** Why a filter does not match a value; undefined when it does. Throws for a filter that cannot be compiled. */
export function filterMismatch(document: Readonly<Record<string, unknown>>, value: unknown, at = ''): FilterMismatch | undefined {
  for (const [name, operand] of Object.entries(document)) {
    if (compileFilter({ [name]: operand })(value)) continue;
    if (name === '$and') return (operand as Record<string, unknown>[]).map((it) => filterMismatch(it, value, at)).find(Boolean);
    if (name.startsWith('$')) return { path: at, operator: name, wanted: operand, found: value };
    const path = at === '' ? name : `${at}.${name}`;
    const found = memberAt(value, name.split('.'));
    return isObject(operand) ? filterMismatch(operand, found, path) : { path, operator: '$eq', wanted: operand, found };
  }
  return undefined;
}
