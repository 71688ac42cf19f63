import type { Strategy } from '@gateway/store/config';
import type { RequestResult } from '../request/sender.js';

/** Only a first attempt with another retry left: other idle connections may be lost too. */
export function retriesAtOnce(
  { isIdleLoss }: RequestResult,
  { retry_count }: Strategy,
  attempt: number,
): boolean {
  return isIdleLoss === true && attempt === 1 && retry_count > 1;
}

const EXPONENTIAL_CAP_SECONDS = 7200;
const RETRY_AFTER_CAP_SECONDS = 24 * 3600;

/**
 * Returns milliseconds until the next attempt, at least the endpoint's `Retry-After`; null: no
 * retry is left.
 *
 * @param attempt number of the failed attempt, from 1
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
    // The upper half is random: deliveries that failed together do not return together.
    seconds = full / 2 + (full / 2) * random();
  }
  if (retryAfterSeconds !== null)
    seconds = Math.max(seconds, Math.min(retryAfterSeconds, RETRY_AFTER_CAP_SECONDS));
  return Math.round(seconds * 1000);
}

/** Returns seconds (RFC 9110 10.2.3); null if the header is missing or invalid. */
export function retryAfterSeconds(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text);
  // Date.parse accepts nearly any text with a number; HTTP dates begin with the day of the week.
  const isDate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text);
  // asctime has no zone and means UTC: https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7
  const dateMs = isDate ? Date.parse(/([a-z]|[+-]\d{4})$/i.test(text) ? text : `${text} GMT`) : NaN;
  return Number.isNaN(dateMs) ? null : Math.max(0, (dateMs - nowMs) / 1000);
}
