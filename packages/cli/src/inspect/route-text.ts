import type { EventExplanation, FunctionTestResult } from '@gateway/client';
import { maskUrls } from '@gateway/core/logging';
import { escapeLine } from '../output/escape-terminal.js';
import { counted } from '../output/table.js';

const VALUE_CHARS = 80;
const NAMED_MAX = 50;

/**
 * `name (url, status)` on one line, safe to print on a terminal. Credentials are masked; the status
 * `active` is omitted.
 */
export function endpointText({
  name,
  url,
  status,
}: {
  name: string | null;
  url: string | null;
  status?: string | null;
}): string {
  const state = status && status !== 'active' ? `, ${status}` : '';
  return `${escapeLine(name ?? 'an endpoint that is gone', 100)} (${escapeLine(maskUrls(url ?? 'no URL'), 200)}${state})`;
}

type TestedRoute = NonNullable<FunctionTestResult['results'][number]['route']>;
type Mismatch = NonNullable<EventExplanation['subscriptions'][number]['mismatch']>;

/** One line, such as `would go to 2 endpoints: shop, archive`. */
export function targetsText({
  endpoint_count: count,
  endpoints,
  sentence,
  subscriptions,
}: TestedRoute): string {
  if (count === 0) return `would go nowhere. ${sentence}`;
  const names = new Map(subscriptions.map(({ uid, name }) => [uid, name]));
  const named = endpoints.slice(0, NAMED_MAX).map(({ name, subscription_id: id }) => {
    const by = id === null ? '' : ` by the subscription ${escapeLine(names.get(id) ?? id, 100)}`;
    return escapeLine(name, 100) + by;
  });
  const more = count > named.length ? [`${count - named.length} more`] : [];
  return `would go to ${counted(count, 'endpoint')}: ${[...named, ...more].join(', ')}`;
}

/**
 * One line for each of the first 50 subscriptions that do not match, and one line that counts the
 * rest.
 */
export function mismatchLines({ subscriptions }: TestedRoute): string[] {
  const missed = subscriptions.flatMap(({ name, mismatch }) =>
    mismatch ? [`${escapeLine(name, 100)}: ${mismatchText(mismatch)}`] : [],
  );
  const more =
    missed.length > NAMED_MAX ? [`${missed.length - NAMED_MAX} more; --json has all`] : [];
  return [...missed.slice(0, NAMED_MAX), ...more];
}

/** A clause without a full stop. */
export function mismatchText(mismatch: Mismatch): string {
  const { part, path = '', operator, wanted, found, sentence } = mismatch;
  switch (part) {
    case 'deleted':
      return 'the subscription was deleted';
    case 'disabled':
      return 'the subscription is disabled';
    case 'endpoint':
      return sentence ?? 'the endpoint was deleted';
    case 'filter':
      return `the filter is invalid and matches nothing: ${sentence}`;
    case 'event_types':
      if (sentence) return sentence;
      return `the event type ${escapeLine(String(found), 200)} does not match ${escapeLine([wanted].flat().join(', '), 200)}`;
    case 'headers':
    case 'body': {
      const place =
        part === 'headers'
          ? `the header ${escapeLine(path, 100)}`
          : path === ''
            ? 'the body'
            : `the body's ${escapeLine(path, 100)}`;
      if (operator === '$or')
        return `none of the ${Array.isArray(wanted) ? `${wanted.length} ` : ''}alternatives of $or matches ${path === '' ? `the ${part}` : place}`;
      return `the filter requires ${place} ${operator} ${valueText(wanted)}, but it is ${valueText(found)}`;
    }
  }
}

function valueText(value: unknown): string {
  return value === undefined ? 'missing' : escapeLine(JSON.stringify(value), VALUE_CHARS);
}
