import { FilterBudget, FilterBudgetError } from '../events/filter.js';
import { messageOf } from '../events/message.js';
import { isOperational } from '../events/operational.js';
import { type Addressed, type RoutingOutcome, routingRule } from './outcomes.js';
import type { RoutedEndpoint, RoutedProject, RoutedSubscription } from './routed-project.js';

/** `data` is parsed only if a filter needs the body. */
export interface RoutableEvent extends Addressed {
  readonly eventType: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly data: string;
  /** These are of its message, for filters on it. */
  readonly sourceId?: string | null;
  readonly coordinates?: string;
  readonly occurredAtMs?: number;
  readonly message?: string | null | undefined;
}

/** `message` in filters. Of an event without a source, only its headers. */
export function filteredMessage({
  sourceId = null,
  coordinates = '',
  occurredAtMs = 0,
  message,
  headers,
}: RoutableEvent): object {
  return { ...messageOf({ sourceId, coordinates, occurredAtMs, message }), headers };
}

export interface Target<Endpoint> {
  readonly endpoint: Endpoint;
  /** Null if the endpoint was chosen without a subscription, such as by its id. */
  readonly subscriptionId: string | null;
}

export interface EventRoute<Endpoint> {
  readonly outcome: RoutingOutcome;
  readonly targets: readonly Target<Endpoint>[];
}

/**
 * Endpoints are returned regardless of their status. If there are none, `outcome` gives the reason.
 * @param budget shared by all subscriptions, because many small filters delay other projects as
 *   much as one large filter
 * @param bodyOf called at most once, and only if a filter needs the body
 */
export function route<Endpoint extends RoutedEndpoint>(
  project: RoutedProject<Endpoint> | undefined,
  event: RoutableEvent,
  budget = new FilterBudget(),
  bodyOf: () => unknown = () => {
    budget.parsedCharacters = event.data.length;
    return JSON.parse(event.data);
  },
): EventRoute<Endpoint> {
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
      return matchSubscriptions(project, event, budget, bodyOf);
  }
}

function targets<Endpoint>(
  endpoints: readonly Endpoint[],
  otherwise: RoutingOutcome,
): EventRoute<Endpoint> {
  return endpoints.length > 0
    ? {
        outcome: 'routed',
        targets: endpoints.map((endpoint) => ({ endpoint, subscriptionId: null })),
      }
    : { outcome: otherwise, targets: [] };
}

function matchSubscriptions<Endpoint extends RoutedEndpoint>(
  project: RoutedProject<Endpoint>,
  event: RoutableEvent,
  budget: FilterBudget,
  bodyOf: () => unknown,
): EventRoute<Endpoint> {
  const matched: Target<Endpoint>[] = [];
  let body: unknown;
  let message: unknown;
  try {
    for (const subscription of subscriptionsOf(project, event.eventType)) {
      if (subscription.headers && !subscription.headers(event.headers, budget)) continue;
      if (subscription.body && !subscription.body((body ??= bodyOf()), budget)) continue;
      if (
        subscription.message &&
        !subscription.message((message ??= filteredMessage(event)), budget)
      )
        continue;
      const endpoint = project.endpoints.get(subscription.endpointId);
      if (endpoint) matched.push({ endpoint, subscriptionId: subscription.id });
    }
  } catch (error) {
    if (error instanceof FilterBudgetError) return { outcome: 'filter_budget', targets: [] };
    throw error;
  }
  return { outcome: matched.length > 0 ? 'routed' : 'no_subscription', targets: matched };
}

const REMEMBERED_TYPES_MAX = 10_000;
/** Approximate, for all event types of a project. */
const REMEMBERED_SUBSCRIPTIONS_MAX = 200_000;

function subscriptionsOf(project: RoutedProject, eventType: string): readonly RoutedSubscription[] {
  let subscriptions = project.subscriptionsOfType.get(eventType);
  if (!subscriptions) {
    subscriptions = project.subscriptions.filter(
      ({ eventTypes, endpointId }) =>
        eventTypes.some((pattern) => matchesType(pattern, eventType)) &&
        mayReceive(project.endpoints.get(endpointId), eventType),
    );
    const typesMax = Math.min(
      REMEMBERED_TYPES_MAX,
      REMEMBERED_SUBSCRIPTIONS_MAX / project.subscriptions.length,
    );
    if (project.subscriptionsOfType.size < typesMax)
      project.subscriptionsOfType.set(eventType, subscriptions);
  }
  return subscriptions;
}

/** An owner must not learn about the endpoints of others from operational events. */
export function mayReceive(
  endpoint: Pick<RoutedEndpoint, 'ownerId'> | undefined,
  eventType: string,
): boolean {
  return (endpoint?.ownerId ?? null) === null || !isOperational(eventType);
}

/**
 * `*` matches all but operational events, `order.*` those that begin with `order.`, and any other
 * pattern only itself.
 */
export function matchesType(pattern: string, eventType: string): boolean {
  if (pattern === '*') return !isOperational(eventType);
  return pattern.endsWith('.*')
    ? eventType.startsWith(pattern.slice(0, -1))
    : pattern === eventType;
}
