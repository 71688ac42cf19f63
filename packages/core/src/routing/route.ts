import { FilterBudget, FilterBudgetError } from '../events/filter.js';
import { type Addressed, type RoutingOutcome, routingRule } from './outcomes.js';
import type { RoutedEndpoint, RoutedProject, RoutedSubscription } from './routed-project.js';

/** What routing looks at. `data` is parsed only if a filter asks for the body. */
export interface RoutableEvent extends Addressed {
  readonly eventType: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly data: string;
}

export interface Target<Endpoint> {
  readonly endpoint: Endpoint;
  /** Null: the message itself named its endpoints. */
  readonly subscriptionId: string | null;
}

export interface Route<Endpoint> {
  readonly outcome: RoutingOutcome;
  readonly targets: readonly Target<Endpoint>[];
}

/**
 * Returns the endpoints that get the event, whatever their status; when there are none, `outcome` says why.
 * @param budget one for all subscriptions: many filters of a project hold up the events of others as much as a large one
 * @param bodyOf called at most once, when a filter asks for the body
 */
export function route<Endpoint extends RoutedEndpoint>(
  project: RoutedProject<Endpoint> | undefined,
  event: RoutableEvent,
  budget = new FilterBudget(),
  bodyOf: () => unknown = () => {
    budget.parsedCharacters = event.data.length;
    return JSON.parse(event.data);
  },
): Route<Endpoint> {
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

function targets<Endpoint>(endpoints: readonly Endpoint[], otherwise: RoutingOutcome): Route<Endpoint> {
  return endpoints.length > 0
    ? { outcome: 'routed', targets: endpoints.map((endpoint) => ({ endpoint, subscriptionId: null })) }
    : { outcome: otherwise, targets: [] };
}

function matchSubscriptions<Endpoint extends RoutedEndpoint>(
  project: RoutedProject<Endpoint>,
  event: RoutableEvent,
  budget: FilterBudget,
  bodyOf: () => unknown,
): Route<Endpoint> {
  const matched: Target<Endpoint>[] = [];
  let body: unknown;
  try {
    for (const subscription of subscriptionsOf(project, event.eventType)) {
      if (subscription.headers && !subscription.headers(event.headers, budget)) continue;
      if (subscription.body && !subscription.body((body ??= bodyOf()), budget)) continue;
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
/** Of all remembered types of a project together, about. */
const REMEMBERED_SUBSCRIPTIONS_MAX = 200_000;

function subscriptionsOf(project: RoutedProject, eventType: string): readonly RoutedSubscription[] {
  let subscriptions = project.subscriptionsOfType.get(eventType);
  if (!subscriptions) {
    subscriptions = project.subscriptions.filter((subscription) =>
      subscription.eventTypes.some((pattern) => matchesType(pattern, eventType)),
    );
    const typesMax = Math.min(REMEMBERED_TYPES_MAX, REMEMBERED_SUBSCRIPTIONS_MAX / project.subscriptions.length);
    if (project.subscriptionsOfType.size < typesMax) project.subscriptionsOfType.set(eventType, subscriptions);
  }
  return subscriptions;
}

/** `*` matches every event type, `order.*` every one that begins with `order.`, anything else only itself. */
export function matchesType(pattern: string, eventType: string): boolean {
  if (pattern === '*') return true;
  return pattern.endsWith('.*') ? eventType.startsWith(pattern.slice(0, -1)) : pattern === eventType;
}
