import type { Config } from '@gateway/core/config';
import type { Endpoint } from '@gateway/ingest/routing/project';

export interface BreakerPolicy {
  /** Failed share of the requests, 0 to 1. */
  readonly threshold: number;
  readonly minimumRequests: number;
  readonly windowMs: number;
  /** Milliseconds until the first probe; doubles with each further trip. */
  readonly openMs: number;
  readonly openMaxMs: number;
}

/** Returns the settings, overridden by the project within `limits`; undefined: no breaker. */
export function policyOf(
  { circuitBreaker: own }: Endpoint,
  { circuit_breaker: settings, limits }: Config,
): BreakerPolicy | undefined {
  // The API refuses values beyond the limits, but stored projects may have them, and also 0: never.
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
