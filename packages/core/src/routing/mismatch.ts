import { compileFilter, FilterBudget, shownOf, valueAt } from '../events/filter.js';
import { isObject } from '../json/json-value.js';
import { matchesType, mayReceive, type RoutableEvent } from './route.js';
import { lowerNames, type RoutedEndpoint, type StoredSubscription } from './routed-project.js';

export type SubscriptionMismatch =
  | { readonly part: 'deleted' }
  | { readonly part: 'disabled' }
  | { readonly part: 'endpoint'; readonly sentence?: string }
  | {
      readonly part: 'event_types';
      readonly wanted: readonly string[];
      readonly found: string;
      readonly sentence?: string;
    }
  | ({ readonly part: 'headers' | 'body' } & FilterMismatch)
  /** The filter does not compile or exceeds the budget, so it matches nothing. */
  | { readonly part: 'filter'; readonly sentence: string };

interface FilterMismatch {
  /** Such as `order.amount`. Empty for the headers or body as a whole. */
  readonly path: string;
  readonly operator: string;
  /** The operand. For `$or`, the alternatives, none of which matches. */
  readonly wanted: unknown;
  readonly found: unknown;
}

interface CandidateSubscription extends StoredSubscription {
  readonly is_disabled: boolean;
  readonly deleted_at: Date | null;
}

/** Null if the subscription matches. `data` is the parsed body. */
export function subscriptionMismatch(
  { event_types: patterns, filter, is_disabled, deleted_at }: CandidateSubscription,
  {
    event,
    data,
    endpoint,
    budget,
  }: {
    event: RoutableEvent;
    data: unknown;
    endpoint: Pick<RoutedEndpoint, 'ownerId'> | null;
    budget: FilterBudget;
  },
): SubscriptionMismatch | null {
  if (deleted_at !== null) return { part: 'deleted' };
  if (is_disabled) return { part: 'disabled' };
  if (!patterns.some((pattern) => matchesType(pattern, event.eventType))) {
    const mismatch = { part: 'event_types', wanted: patterns, found: event.eventType } as const;
    return patterns.includes('*')
      ? { ...mismatch, sentence: 'its event type * does not match operational events' }
      : mismatch;
  }
  try {
    const headers = filterMismatch(lowerNames(filter?.headers ?? {}), event.headers, { budget });
    if (headers) return { part: 'headers', ...headers };
    const body = filterMismatch(filter?.body ?? {}, data, { budget });
    if (body) return { part: 'body', ...body };
  } catch (error) {
    return { part: 'filter', sentence: (error as Error).message };
  }
  if (!endpoint) return { part: 'endpoint' };
  if (mayReceive(endpoint, event.eventType)) return null;
  return {
    part: 'endpoint',
    sentence: 'its endpoint has an owner, who gets no operational events',
  };
}

/** Undefined if the filter matches. Throws if it does not compile or exceeds the budget. */
export function filterMismatch(
  document: Readonly<Record<string, unknown>>,
  value: unknown,
  { at = '', budget = new FilterBudget() }: { at?: string; budget?: FilterBudget } = {},
): FilterMismatch | undefined {
  if (compileFilter(document)(value, budget)) return undefined;
  for (const [name, operand] of Object.entries(document)) {
    if (compileFilter({ [name]: operand })(value, budget)) continue;
    if (name === '$and')
      return (operand as Record<string, unknown>[])
        .map((it) => filterMismatch(it, value, { at, budget }))
        .find(Boolean);
    if (name.startsWith('$'))
      return { path: at, operator: name, wanted: operand, found: shownOf(value) };
    const path = at === '' ? name : `${at}.${name}`;
    const found = valueAt(value, name, budget);
    return isObject(operand)
      ? filterMismatch(operand, found, { at: path, budget })
      : { path, operator: '$eq', wanted: operand, found: shownOf(found) };
  }
  return undefined;
}
