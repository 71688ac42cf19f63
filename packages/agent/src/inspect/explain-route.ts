import type { NamedEndpoint, NamedSubscription, RoutingRecords } from '@gateway/store/config';
import { lowerNames, projectOf } from '../config/config-cache.js';
import { type RoutingOutcome, routingRule, type RoutingRule } from '../model/routing.js';
import { matchesType, type RoutableEvent, route } from '../routing/plan-deliveries.js';
import { filterMismatch, type FilterMismatch } from './filter-mismatch.js';

export interface ExplainedTarget {
  readonly endpoint: NamedEndpoint;
  /** Null when the message named its endpoints. */
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

/** Where an event would go now. */
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
