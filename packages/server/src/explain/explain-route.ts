import { FilterBudget } from '@gateway/core/events';
import { clip } from '@gateway/core/json';
import {
  route,
  routedProject,
  routingRule,
  subscriptionMismatch,
  withSentence,
  type RoutableEvent,
  type RoutingOutcome,
  type RoutingRule,
  type SubscriptionMismatch,
} from '@gateway/core/routing';
import type { NamedEndpoint, NamedSubscription, RoutingRecords } from '@gateway/store/config';

export interface ExplainedTarget {
  readonly endpoint: NamedEndpoint;
  readonly subscription: NamedSubscription | null;
}

export interface ExplainedSubscription {
  readonly subscription: NamedSubscription;
  readonly endpoint: NamedEndpoint | null;
  readonly mismatch: SubscriptionMismatch | null;
}

export interface ExplainedRoute {
  readonly rule: RoutingRule;
  readonly outcome: RoutingOutcome;
  readonly targets: readonly ExplainedTarget[];
  /** Matching ones first. Empty if another routing rule applies, or the project is deleted. */
  readonly subscriptions: readonly ExplainedSubscription[];
}

/** The total cost of comparisons, which takes tens of milliseconds. */
const WORK_MAX = 1_000_000;

/**
 * Routes as an agent would now. Explains at most `max` subscriptions, within bounded work.
 */
export function explainRoute(
  records: RoutingRecords,
  event: RoutableEvent,
  max: number,
): ExplainedRoute {
  const endpoints = new Map(records.endpoints.map((it) => [it.id, it]));
  const live = records.subscriptions.filter(
    ({ deleted_at, is_disabled }) => deleted_at === null && !is_disabled,
  );
  const subscriptions = new Map(live.map((it) => [it.id, it]));
  const routable = records.endpoints.map((it) => ({ id: it.id, ownerId: it.owner_id }));
  const project =
    records.project.deleted_at === null
      ? routedProject(routable, live, () => undefined)
      : undefined;
  const { outcome, targets } = route(project, event);
  const rule = routingRule(event);
  const matched = new Set(targets.map(({ subscriptionId }) => subscriptionId));
  const asked = project && rule === 'subscriptions' ? records.subscriptions : [];
  const ordered = [
    ...asked.filter(({ id }) => matched.has(id)),
    ...asked.filter(({ id }) => !matched.has(id)),
  ];
  return {
    rule,
    outcome,
    targets: targets.map(({ endpoint, subscriptionId }) => ({
      endpoint: endpoints.get(endpoint.id)!,
      subscription: subscriptionId === null ? null : subscriptions.get(subscriptionId)!,
    })),
    subscriptions: [...explained(ordered.slice(0, max), endpoints, event)],
  };
}

function* explained(
  subscriptions: readonly NamedSubscription[],
  endpoints: ReadonlyMap<string, NamedEndpoint>,
  event: RoutableEvent,
): Generator<ExplainedSubscription> {
  const data: unknown = JSON.parse(event.data);
  let work = 0;
  for (const subscription of subscriptions) {
    if (work > WORK_MAX) return;
    const budget = new FilterBudget();
    const endpoint = endpoints.get(subscription.endpoint_id) ?? null;
    yield {
      subscription,
      endpoint,
      mismatch: subscriptionMismatch(subscription, {
        event,
        data,
        endpoint: endpoint && { ownerId: endpoint.owner_id },
        budget,
      }),
    };
    work += budget.cost;
  }
}

/** Truncated as JSON: a value that a filter finds may be the event's whole data. */
const VALUE_CHARS = 1_000;

/** `mismatch` is null if the subscription matches. */
export function subscriptionRecord(
  { subscription: { id: uid, name }, mismatch }: ExplainedSubscription,
  clipped = clipper(),
) {
  const shown =
    mismatch && 'operator' in mismatch
      ? { ...mismatch, wanted: clipped(mismatch.wanted), found: clipped(mismatch.found) }
      : mismatch;
  return { uid, name, matches: mismatch === null, mismatch: shown && withSentence(shown) };
}

/** Truncates a long value to the start of its JSON. Serialises each object only once. */
export function clipper(): (value: unknown) => unknown {
  const clipped = new Map<unknown, unknown>();
  return (value) => {
    if (!clipped.has(value)) {
      const text = JSON.stringify(value) ?? '';
      clipped.set(value, text.length > VALUE_CHARS ? clip(text, VALUE_CHARS + 1) : value);
    }
    return clipped.get(value);
  };
}
