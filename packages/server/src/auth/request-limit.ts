import { GatewayError } from '@gateway/core/errors';
import type { SharedBuckets } from '@gateway/store/kv';

/** Throws above the limit. `tell` first receives the limit's state, unless there is no limit. */
export type RequestLimit = (
  of: { readonly id: string },
  tell?: (state: LimitState) => void,
) => Promise<void>;

export interface LimitState {
  /** Requests allowed at once after an idle period. */
  readonly limit: number;
  readonly remaining: number;
  /** Whole seconds until the full burst is available again. */
  readonly resetSeconds: number;
}

export interface RequestLimitOptions {
  /** For each id; 0 for no limit. */
  readonly ratePerSecond: number;
  /** `ratePerSecond` by default. */
  readonly burst?: number;
  readonly buckets: SharedBuckets;
  readonly code?:
    | 'too_many_requests'
    | 'too_many_portal_requests'
    | 'too_many_tests'
    | 'too_many_function_tests'
    | 'too_many_test_events'
    | 'too_many_resets';
}

/** Delays a rejection. While `REFUSED_MAX` are delayed, others are sent immediately. */
const REFUSED_MS = 500;
const REFUSED_MAX = 1000;

export function requestLimit({
  ratePerSecond,
  burst = ratePerSecond,
  buckets,
  code = 'too_many_requests',
}: RequestLimitOptions): RequestLimit {
  if (ratePerSecond === 0) return () => Promise.resolve();
  const rate = { perSecond: ratePerSecond, burst };
  let refused = 0;
  return async ({ id }, tell) => {
    const { granted, left, waitMs } = await buckets.take(`api:${code}:${id}`, 1, rate);
    const resetSeconds = Math.ceil((burst - left) / ratePerSecond);
    tell?.({ limit: burst, remaining: left, resetSeconds });
    if (granted > 0) return;
    // Prevents a client that retries immediately from occupying the server.
    if (refused < REFUSED_MAX) {
      refused++;
      await new Promise((resolve) => setTimeout(resolve, REFUSED_MS));
      refused--;
    }
    throw new GatewayError(code, {
      limit: ratePerSecond,
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
    });
  };
}
