import type { SharedBuckets } from '@gateway/store/kv';

/**
 * The ingest rate limit of the instance, a token bucket in KV. Messages beyond the limit are
 * delayed, never lost.
 */
export class Throttle {
  /** @param perSecond messages, or 0 for no limit */
  constructor(
    private readonly buckets: SharedBuckets,
    private readonly perSecond: number,
  ) {}

  get unlimited(): boolean {
    return this.perSecond === 0;
  }

  /** At least 1 message may pass; 0 on abort. */
  async take(wanted: number, signal: AbortSignal): Promise<number> {
    const { perSecond } = this;
    if (this.unlimited) return wanted;
    while (!signal.aborted) {
      const rate = { perSecond, burst: perSecond };
      const { granted, waitMs } = await this.buckets.take('ingest', wanted, rate);
      if (granted > 0) return granted;
      await new Promise<void>((resolve) => setTimeout(resolve, Math.min(Math.max(waitMs, 5), 250)));
    }
    return 0;
  }
}
