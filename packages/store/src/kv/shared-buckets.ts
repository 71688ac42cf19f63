import { type Rate, type TakenTokens, TokenBuckets } from '@gateway/core/process';
import type { KvFallback } from './kv-fallback.js';

interface SharedBucketsOptions {
  /** Undefined if processes count separately. */
  readonly kv: KvFallback | undefined;
  /** Returns the number of processes that share a rate, also while KV is away. By default 1. */
  readonly sharers?: () => number;
}

/** Token buckets in KV, or this process's part of them in memory while KV is unavailable. */
export class SharedBuckets {
  readonly #own = new TokenBuckets();

  constructor(private readonly options: SharedBucketsOptions) {}

  /** Up to `wanted` tokens. */
  async take(name: string, wanted: number, { perSecond, burst }: Rate): Promise<TakenTokens> {
    const { kv, sharers } = this.options;
    const shared = await kv?.ask((it) => it.takeTokens(name, perSecond, wanted, burst));
    if (shared) return shared.answer;
    const part = 1 / Math.max(1, sharers?.() ?? 1);
    return this.#own.take(name, wanted, {
      perSecond: perSecond * part,
      burst: Math.max(1, burst * part),
    });
  }
}
