import type { MessageType } from '@gateway/store/events';
import type { Endpoint, Project, Subscription } from '../config/config-cache.js';
import type { RoutingOutcome } from '../model/routing.js';

/** What routing looks at. `body` is parsed only when a filter asks. */
export interface Routable {
  readonly eventType: string;
  readonly messageType: MessageType;
  readonly endpointId: string | null;
  readonly ownerId: string | null;
  readonly headers: Readonly<Record<string, string>>;
  body(): unknown;
}

export interface Target {
  readonly endpoint: Endpoint;
  /** Null: the message itself named its endpoints. */
  readonly subscriptionId: string | null;
}

export interface Route {
  readonly outcome: RoutingOutcome;
  readonly targets: readonly Target[];
}

/** How the endpoints of an event are found. */
export type RoutingRule = 'broadcast' | 'endpoint_id' | 'owner_id' | 'subscriptions';

type Addressed = Pick<Routable, 'messageType' | 'endpointId' | 'ownerId'>;

/**
 * The rule of an event, in the order of the specification: broadcast ignores both ids; then endpoint_id, which wins over owner_id
 * (docs/decisions/0004-endpoint-id-wins-over-owner-id.md); then owner_id; then subscriptions.
 */
export function routingRule({ messageType, endpointId, ownerId }: Addressed): RoutingRule {
  if (messageType === 'broadcast') return 'broadcast';
  if (endpointId !== null) return 'endpoint_id';
  return ownerId === null ? 'subscriptions' : 'owner_id';
}

/** True when the event's endpoints have to be found among subscriptions, which is the work of the match-subscriptions queue. */
export function needsMatching(event: Addressed): boolean {
  return routingRule(event) === 'subscriptions';
}

/** Finds the endpoints of an event by its rule. */
export function route(project: Project | undefined, event: Routable): Route {
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

function matchSubscriptions(project: Project, event: Routable): Route {
  const matched: Target[] = [];
  for (const subscription of subscriptionsOf(project, event.eventType)) {
    if (subscription.headers && !subscription.headers(event.headers)) continue;
    if (subscription.body && !subscription.body(event.body())) continue;
    const endpoint = project.endpoints.get(subscription.endpointId);
    if (endpoint) matched.push({ endpoint, subscriptionId: subscription.id });
  }
  return { outcome: matched.length > 0 ? 'routed' : 'no_subscription', targets: matched };
}

/** More event types than this in one project are looked up anew each time. */
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
