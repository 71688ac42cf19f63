import { GatewayError } from '@gateway/core/errors';
import { MemoryKv } from '@gateway/store/kv';
import type { KvFallback } from '../health/kv-fallback.js';

/** Throws above the limit. `tell` first receives its state, if there is a limit. */
export type RequestLimit = (
  of: { readonly id: string },
  tell?: (state: LimitState) => void,
) => Promise<void>;

export interface LimitState {
  /** The burst after an idle period. */
  readonly limit: number;
  readonly remaining: number;
  /** Whole seconds until the full burst. */
  readonly resetSeconds: number;
}

interface RequestLimitOptions {
  /** 0: unlimited. */
  readonly ratePerSecond: number;
  /** The burst after an idle period; `ratePerSecond` by default. */
  readonly burst?: number;
  readonly kv: KvFallback | undefined;
  readonly code?:
    'too_many_requests' | 'too_many_portal_requests' | 'too_many_tests' | 'too_many_function_tests';
}

/** Refusals are delayed, except above the maximum. */
const REFUSED_MS = 500;
const REFUSED_MAX = 1000;

/** Limits requests per id. Servers count in KV together, or separately while it is unavailable. */
export function requestLimit({
  ratePerSecond,
  burst,
  kv,
  code = 'too_many_requests',
}: RequestLimitOptions): RequestLimit {
  if (ratePerSecond === 0) return () => Promise.resolve();
  const memory = new MemoryKv();
  let refused = 0;
  const limit = burst ?? ratePerSecond;
  return async ({ id }, tell) => {
    const bucket = `api:${id}`;
    const shared = await kv?.ask((it) => it.takeTokens(bucket, ratePerSecond, 1, burst));
    const { granted, left, waitMs } =
      shared?.answer ?? (await memory.takeTokens(bucket, ratePerSecond, 1, burst));
    tell?.({ limit, remaining: left, resetSeconds: Math.ceil((limit - left) / ratePerSecond) });
    if (granted > 0) return;
    // A client that retries immediately would occupy the server.
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
