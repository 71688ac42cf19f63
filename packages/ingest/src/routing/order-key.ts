import { hash } from 'node:crypto';
import { FilterBudget, shownOf, valueAt, type WholeMessage } from '@gateway/core/events';
import type { NewEvent } from '@gateway/store/events';
import type { Endpoint, Project } from './project.js';

/** Characters of a key that people see. The digest is of all. */
const SHOWN_MAX = 200;

type OrderedEvent = Pick<NewEvent, 'data' | 'headers' | 'message'>;

/** Without a key, the message group of SQS. */
function keyOfMessage(stored: string | null | undefined): string | undefined {
  if (!stored) return undefined;
  const { key, attributes } = JSON.parse(stored) as Partial<WholeMessage>;
  return key ?? attributes?.['MessageGroupId'];
}

/** The key by which a delivery is ordered. Null if it is not, or the event has no value for it. */
export type OrderKeys = (
  endpoint: Endpoint,
  subscriptionId: string | null,
) => { readonly orderKey: string; readonly orderText: string } | null;

/** For the targets of one event, whose data is parsed at most once. */
export function orderKeysOf(project: Project, event: OrderedEvent): OrderKeys {
  let data: unknown;
  const valueOf = (ordering: string): unknown => {
    if (ordering === 'message.key') return keyOfMessage(event.message);
    const dot = ordering.indexOf('.');
    const path = ordering.slice(dot + 1);
    if (ordering.slice(0, dot) === 'headers') return event.headers[path.toLowerCase()];
    return shownOf(valueAt((data ??= JSON.parse(event.data)), path, new FilterBudget()));
  };
  return (endpoint, subscriptionId) => {
    const ordering =
      (subscriptionId === null ? undefined : project.orderings.get(subscriptionId)) ??
      endpoint.ordering;
    if (ordering === null) return null;
    const value = valueOf(ordering);
    if (value === undefined || value === null || value === '') return null;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return {
      orderKey: hash('sha256', text, 'hex').slice(0, 32),
      orderText: text.slice(0, SHOWN_MAX),
    };
  };
}
