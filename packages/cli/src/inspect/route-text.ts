import type { FunctionTestResult } from '@gateway/client';
import { maskUrls } from '@gateway/core/logging';
import { escapeLine } from '../output/escape-terminal.js';
import { counted } from '../output/table.js';

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
    mismatch ? [`${escapeLine(name, 100)}: ${escapeLine(mismatch.sentence)}`] : [],
  );
  const more =
    missed.length > NAMED_MAX ? [`${missed.length - NAMED_MAX} more; --json has all`] : [];
  return [...missed.slice(0, NAMED_MAX), ...more];
}
