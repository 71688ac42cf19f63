import type { Strategy } from '@gateway/store/config';
import type { RequestResult } from '../request/sender.js';

/**
 * Whether to retry immediately because the request was lost on an idle connection. Other idle
 * connections may be lost too, so this applies only to a first attempt with more than one retry
 * left.
 */
export function retriesAtOnce(
  { isIdleLoss }: RequestResult,
  { retry_count }: Strategy,
  attempt: number,
): boolean {
  return isIdleLoss === true && attempt === 1 && retry_count > 1;
}

const EXPONENTIAL_CAP_SECONDS = 7200;
const RETRY_AFTER_CAP_SECONDS = 24 * 3600;
const RETRY_AFTER_JITTER_CAP_SECONDS = 300;

/**
 * Returns the delay before the next attempt, or null if no retry is left. The delay is at least the
 * `Retry-After`, capped at 24 hours, and a random part of it, so that deliveries that were held off
 * together do not return together.
 *
 * @param attempt the number of the failed attempt, from 1
 */
export function nextAttemptInMs(
  strategy: Strategy,
  attempt: number,
  retryAfterSeconds: number | null,
  random: () => number = Math.random,
): number | null {
  if (attempt > strategy.retry_count) return null;
  let seconds = strategy.duration;
  if (strategy.type === 'exponential') {
    const full = Math.min(
      strategy.max_seconds ?? EXPONENTIAL_CAP_SECONDS,
      strategy.duration * 2 ** Math.min(attempt - 1, 40),
    );
    // Half of the delay is jitter, so that deliveries that failed together are not retried
    // together.
    seconds = full / 2 + (full / 2) * random();
  }
  if (retryAfterSeconds !== null) {
    const asked = Math.min(retryAfterSeconds, RETRY_AFTER_CAP_SECONDS);
    const jitter = Math.min(1 + asked / 4, RETRY_AFTER_JITTER_CAP_SECONDS) * random();
    seconds = Math.max(seconds, asked + jitter);
  }
  return Math.ceil(seconds * 1000);
}

/** Parses a `Retry-After` header (RFC 9110 10.2.3). Returns null if it is missing or invalid. */
export function retryAfterSeconds(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text);
  // HTTP dates begin with a weekday. Other text is rejected, because `Date.parse` accepts nearly
  // any string that contains a number.
  const isDate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text);
  // A date in asctime format has no time zone and is in UTC:
  // https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7
  const dateMs = isDate ? Date.parse(/([a-z]|[+-]\d{4})$/i.test(text) ? text : `${text} GMT`) : NaN;
  return Number.isNaN(dateMs) ? null : Math.max(0, (dateMs - nowMs) / 1000);
}
