import type { Endpoint, Project, Subscription } from '../config/config-cache.js';
import type { ReadyEvent } from '../model/delivery.js';
import { routingRule, type RoutingOutcome } from '../model/routing.js';

/** What routing looks at. `data` is parsed only if a filter asks for the body. */
export type RoutableEvent = Pick<ReadyEvent, 'eventType' | 'messageType' | 'endpointId' | 'ownerId' | 'headers' | 'data'>;

export interface Target {
  readonly endpoint: Endpoint;
  /** Null: the message itself named its endpoints. */
  readonly subscriptionId: string | null;
}

export interface Route {
  readonly outcome: RoutingOutcome;
  readonly targets: readonly Target[];
}

/** Finds the endpoints of an event by its rule. */
export function route(project: Project | undefined, event: RoutableEvent): Route {
  if (!project) return { outcome: 'unknown_project', targets: [] };
  switch (routingRule(event)) {
    case 'broadcast':
      return targets([...project.endpoints.values()], 'no_endpoints');
    case 'endpoint_id': {
      const endpoint = project.endpoints.get(event.endpointId!);
      return targets(endpoint ? [endpoint] : [], 'unknown_endpoint');
    }
    case 'owner_id':
      return targets(project.endpointsOfOwner.get(event.ownerId!) ?? [], 'unknown_owner');
    case 'subscriptions':
      return matchSubscriptions(project, event);
  }
}

function targets(endpoints: readonly Endpoint[], otherwise: RoutingOutcome): Route {
  return endpoints.length > 0
    ? { outcome: 'routed', targets: endpoints.map((endpoint) => ({ endpoint, subscriptionId: null })) }
    : { outcome: otherwise, targets: [] };
}

function matchSubscriptions(project: Project, event: RoutableEvent): Route {
  const matched: Target[] = [];
  let body: unknown;
  for (const subscription of subscriptionsOf(project, event.eventType)) {
    if (subscription.headers && !subscription.headers(event.headers)) continue;
    if (subscription.body && !subscription.body((body ??= JSON.parse(event.data)))) continue;
    const endpoint = project.endpoints.get(subscription.endpointId);
    if (endpoint) matched.push({ endpoint, subscriptionId: subscription.id });
  }
  return { outcome: matched.length > 0 ? 'routed' : 'no_subscription', targets: matched };
}

/** Event types per project whose subscriptions are cached. */
const REMEMBERED_TYPES_MAX = 10_000;

function subscriptionsOf(project: Project, eventType: string): readonly Subscription[] {
  let subscriptions = project.subscriptionsOfType.get(eventType);
  if (!subscriptions) {
    subscriptions = project.subscriptions.filter((subscription) =>
      subscription.eventTypes.some((pattern) => matchesType(pattern, eventType)),
    );
    if (project.subscriptionsOfType.size < REMEMBERED_TYPES_MAX) project.subscriptionsOfType.set(eventType, subscriptions);
  }
  return subscriptions;
}

/** `*` matches every event type, `order.*` every one that begins with `order.`, anything else only itself. */
export function matchesType(pattern: string, eventType: string): boolean {
  if (pattern === '*') return true;
  return pattern.endsWith('.*') ? eventType.startsWith(pattern.slice(0, -1)) : pattern === eventType;
}
