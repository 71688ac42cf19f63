import { maskUrls } from '@gateway/core/logging';
import { sentenceOf, type SubscriptionMismatch } from '@gateway/core/routing';
import type {
  ExplainedRoute,
  ExplainedSubscription,
  ExplainedTarget,
} from '@gateway/store/explain';
import { escapeLine } from '../output/escape-terminal.js';

const VALUE_CHARS = 80;
const NAMED_MAX = 50;

/**
 * Formats `name (url, status)` on one line, safe to print on a terminal. Credentials are masked;
 * the status `active` is omitted.
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

/** Formats one line, such as `would go to 2 endpoints: shop (https://…), archive (https://…)`. */
export function targetsText({ outcome, targets }: ExplainedRoute): string {
  if (targets.length === 0) return `would go nowhere. ${sentenceOf(outcome)}`;
  const named = targets.slice(0, NAMED_MAX).map(targetText);
  const more = targets.length > NAMED_MAX ? [`${targets.length - NAMED_MAX} more`] : [];
  const count = targets.length === 1 ? '1 endpoint' : `${targets.length} endpoints`;
  return `would go to ${count}: ${[...named, ...more].join(', ')}`;
}

function targetText({ endpoint, subscription }: ExplainedTarget): string {
  return (
    endpointText(endpoint) +
    (subscription ? ` by the subscription ${escapeLine(subscription.name, 100)}` : '')
  );
}

/**
 * Returns one line for each of the first 50 subscriptions that do not match, and one line that
 * counts the rest.
 */
export function mismatchLines(subscriptions: readonly ExplainedSubscription[]): string[] {
  const missed = subscriptions.flatMap(({ subscription, mismatch }) =>
    mismatch ? [`${escapeLine(subscription.name, 100)}: ${mismatchText(mismatch)}`] : [],
  );
  const more =
    missed.length > NAMED_MAX ? [`${missed.length - NAMED_MAX} more; --json has all`] : [];
  return [...missed.slice(0, NAMED_MAX), ...more];
}

/** Returns a clause that explains a mismatch, without a full stop. */
export function mismatchText(mismatch: SubscriptionMismatch): string {
  switch (mismatch.part) {
    case 'deleted':
      return 'the subscription was deleted';
    case 'disabled':
      return 'the subscription is disabled';
    case 'endpoint':
      return mismatch.sentence ?? 'the endpoint was deleted';
    case 'filter':
      return `the filter is invalid and matches nothing: ${mismatch.sentence}`;
    case 'event_types':
      if (mismatch.sentence) return mismatch.sentence;
      return `the event type ${escapeLine(mismatch.found, 200)} does not match ${escapeLine(mismatch.wanted.join(', '), 200)}`;
    case 'headers':
    case 'body': {
      const { part, path, operator, wanted, found } = mismatch;
      const place =
        part === 'headers'
          ? `the header ${escapeLine(path, 100)}`
          : path === ''
            ? 'the body'
            : `the body's ${escapeLine(path, 100)}`;
      if (operator === '$or')
        return `none of the ${(wanted as unknown[]).length} alternatives of $or matches ${path === '' ? `the ${part}` : place}`;
      return `the filter requires ${place} ${operator} ${valueText(wanted)}, but it is ${valueText(found)}`;
    }
  }
}

function valueText(value: unknown): string {
  return value === undefined ? 'missing' : escapeLine(JSON.stringify(value), VALUE_CHARS);
}
