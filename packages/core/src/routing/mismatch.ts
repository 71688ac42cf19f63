import { clip } from '@gateway/plugin';
import { compileFilter, FilterBudget, shownOf, valueAt } from '../events/filter.js';
import { isObject } from '../json/json-value.js';
import { filteredMessage, matchesType, mayReceive, type RoutableEvent } from './route.js';
import { lowerNames, type RoutedEndpoint, type StoredSubscription } from './routed-project.js';

export type SubscriptionMismatch =
  /** `filter`: it does not compile or exceeds the budget, so it matches nothing. */
  | { readonly part: 'deleted' | 'disabled' | 'endpoint' | 'filter'; readonly sentence: string }
  | EventTypesMismatch
  | ({ readonly part: 'headers' | 'body' | 'message' } & FilterMismatch);

interface EventTypesMismatch {
  readonly part: 'event_types';
  readonly wanted: readonly string[];
  readonly found: string;
  readonly sentence: string;
}

interface FilterMismatch {
  /** Such as `order.amount`. Empty for the part as a whole. */
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
  if (deleted_at !== null) return { part: 'deleted', sentence: 'the subscription was deleted' };
  if (is_disabled) return { part: 'disabled', sentence: 'the subscription is disabled' };
  const ofType = typeMismatch(patterns, event.eventType);
  if (ofType) return ofType;
  try {
    const headers = filterMismatch(lowerNames(filter?.headers ?? {}), event.headers, { budget });
    if (headers) return { part: 'headers', ...headers };
    const body = filterMismatch(filter?.body ?? {}, data, { budget });
    if (body) return { part: 'body', ...body };
    const message =
      filter?.message && filterMismatch(filter.message, filteredMessage(event), { budget });
    if (message) return { part: 'message', ...message };
  } catch (error) {
    const { message } = error as Error;
    return { part: 'filter', sentence: `the filter is invalid and matches nothing: ${message}` };
  }
  if (!endpoint) return { part: 'endpoint', sentence: 'the endpoint was deleted' };
  if (mayReceive(endpoint, event.eventType)) return null;
  return {
    part: 'endpoint',
    sentence: 'its endpoint has an owner, who gets no operational events',
  };
}

/** Undefined if a pattern matches. */
export function typeMismatch(
  wanted: readonly string[],
  found: string,
): EventTypesMismatch | undefined {
  if (wanted.some((pattern) => matchesType(pattern, found))) return undefined;
  const sentence = wanted.includes('*')
    ? 'its event type * does not match operational events'
    : `the event type ${found} does not match ${clip(wanted.join(', '), SHOWN_CHARS)}`;
  return { part: 'event_types', wanted, found, sentence };
}

const SHOWN_CHARS = 120;

const OPERATORS: Readonly<Record<string, string>> = {
  $eq: 'to be',
  $neq: 'not to be',
  $gt: 'to be more than',
  $gte: 'to be at least',
  $lt: 'to be less than',
  $lte: 'to be at most',
  $in: 'to be one of',
  $nin: 'to be none of',
};

/** Serialises the values, so long ones should be cut before. */
export function withSentence(
  mismatch: SubscriptionMismatch,
): SubscriptionMismatch & { readonly sentence: string } {
  if (!('operator' in mismatch)) return mismatch;
  const { part, path, operator, wanted, found } = mismatch;
  const name =
    part === 'headers' ? `the header ${path}` : part === 'message' ? `message.${path}` : path;
  const place = path === '' ? `the ${part}` : name;
  const asks = OPERATORS[operator] ?? `to match ${operator}`;
  const is = found === undefined ? 'missing' : shown(found);
  const sentence =
    operator === '$or'
      ? `none of the alternatives of $or matches ${place}`
      : `the filter requires ${place} ${asks} ${shown(wanted)}, but it is ${is}`;
  return { ...mismatch, sentence };
}

function shown(value: unknown): string {
  return clip(JSON.stringify(value) ?? 'nothing', SHOWN_CHARS);
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
