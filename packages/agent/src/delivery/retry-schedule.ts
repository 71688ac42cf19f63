import type { Strategy } from '@gateway/store/config';

const EXPONENTIAL_CAP_SECONDS = 7200;
/** An endpoint may ask for patience, not for ever. */
const RETRY_AFTER_CAP_SECONDS = 24 * 3600;

/**
 * Milliseconds until the next attempt, or null when there is none. The only place that decides it.
 *
 * @param attempt number of the attempt that failed, from 1
 * @param retryAfterSeconds what the endpoint asked for; waits at least that long
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
    const full = Math.min(strategy.max_seconds ?? EXPONENTIAL_CAP_SECONDS, strategy.duration * 2 ** Math.min(attempt - 1, 40));
    // The lower half is certain and the upper half drawn, so that what failed together does not come back together.
    seconds = full / 2 + (full / 2) * random();
  }
  if (retryAfterSeconds !== null) seconds = Math.max(seconds, Math.min(retryAfterSeconds, RETRY_AFTER_CAP_SECONDS));
  return Math.round(seconds * 1000);
}

/**
 * Seconds of a `Retry-After` header (RFC 9110 10.2.3: seconds or a date), or null when there is none that makes sense.
 */
export function retryAfterSeconds(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text);
  // Date.parse finds a date in nearly every text that holds a number; those of HTTP begin with the day of the week.
  const dateMs = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(dateMs) ? null : Math.max(0, (dateMs - nowMs) / 1000);
}
