import type { Strategy } from '@gateway/store/config';

/**
 * Whether a delivery that may be retried at once is: after a first attempt, if more than one retry
 * is left.
 */
export function retriesAtOnce({ retry_count }: Strategy, attempt: number): boolean {
  return attempt === 1 && retry_count > 1;
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
