import type { Config } from '@gateway/core/config';
import type { Endpoint } from '@gateway/ingest/routing/project';

export interface BreakerPolicy {
  /** Failure rate, from 0 to 1. */
  readonly threshold: number;
  readonly minimumRequests: number;
  readonly windowMs: number;
  /** Before the first probe. It doubles with each consecutive trip, up to `openMaxMs`. */
  readonly openMs: number;
  readonly openMaxMs: number;
}

/**
 * Undefined if the endpoint has no breaker. Project settings override the configured ones, within
 * `limits`.
 */
export function policyOf(
  { circuitBreaker: own }: Endpoint,
  { circuit_breaker: settings, limits }: Config,
): BreakerPolicy | undefined {
  // The API rejects 0, which would disable the breaker, and values beyond the limits. Stored
  // projects may still have them, so the limit replaces both.
  const bounded = (name: keyof typeof limits & keyof typeof settings) => {
    const value = own?.[name];
    return value === undefined ? settings[name] : Math.min(value || limits[name], limits[name]);
  };
  const percent = bounded('failure_threshold');
  if (percent === 0) return undefined;
  const openMs = (own?.error_timeout ?? settings.error_timeout) * 1000;
  return {
    threshold: percent / 100,
    minimumRequests: bounded('minimum_request_count'),
    windowMs: (own?.observability_window ?? settings.observability_window) * 60_000,
    openMs,
    openMaxMs: Math.max(openMs, settings.max_error_timeout * 1000),
  };
}
