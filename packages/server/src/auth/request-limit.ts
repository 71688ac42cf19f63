import { GatewayError } from '@gateway/core/errors';
import { MemoryKv } from '@gateway/store/kv';
import type { KvFallback } from '../health/kv-fallback.js';

export type RequestLimit = (caller: { readonly id: string }) => Promise<void>;

/** Limits the requests of each credential; a rate of 0 is unlimited. Servers count together in KV, or each on its own while it is unavailable. */
export function requestLimit({ ratePerSecond, kv }: { ratePerSecond: number; kv: KvFallback | undefined }): RequestLimit {
  if (ratePerSecond === 0) return () => Promise.resolve();
  const memory = new MemoryKv();
  return async ({ id }) => {
    const bucket = `api:${id}`;
    const shared = await kv?.ask((it) => it.takeTokens(bucket, ratePerSecond, 1));
    const { granted, waitMs } = shared?.answer ?? (await memory.takeTokens(bucket, ratePerSecond, 1));
    if (granted > 0) return;
    throw new GatewayError('too_many_requests', { limit: ratePerSecond, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) });
  };
}
