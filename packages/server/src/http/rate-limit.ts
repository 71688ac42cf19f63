import { GatewayError } from '@gateway/core/errors';
import { MemoryKv } from '@gateway/store/kv';
import type { PatientKv } from '../health/kv-fallback.js';

/** Counts a request of a caller. Throws `too_many_requests` when it is one too many. */
export type RequestLimit = (caller: { readonly id: string }) => Promise<void>;

/**
 * Limits the requests of each credential. While KV is away each server counts on its own.
 *
 * @param ratePerSecond 0 is unlimited
 * @param kv where the servers count together; without it this one counts on its own
 */
export function requestLimit({ ratePerSecond, kv }: { ratePerSecond: number; kv: PatientKv | undefined }): RequestLimit {
  if (ratePerSecond === 0) return () => Promise.resolve();
  const own = new MemoryKv();
  return async ({ id }) => {
    const bucket = `api:${id}`;
    const shared = await kv?.ask((it) => it.takeTokens(bucket, ratePerSecond, 1));
    const { granted, waitMs } = shared?.answer ?? (await own.takeTokens(bucket, ratePerSecond, 1));
    if (granted > 0) return;
    throw new GatewayError('too_many_requests', { limit: ratePerSecond, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) });
  };
}
