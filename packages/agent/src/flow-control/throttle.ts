import type { AgentContext } from '../config/agent-context.js';
import { TokenBuckets, type TokenBucketsOptions } from './rate-limits.js';

interface ThrottleOptions extends TokenBucketsOptions, Pick<AgentContext, 'log'> {
  /** Messages per second, or 0 for no limit. */
  readonly ratePerSecond: number;
}

/**
 * The ingest rate limit of the instance, a token bucket in KV. Messages beyond the limit are
 * delayed, never lost.
 */
export class Throttle {
  readonly #buckets: TokenBuckets;

  constructor(private readonly options: ThrottleOptions) {
    this.#buckets = new TokenBuckets(options);
  }

  get unlimited(): boolean {
    return this.options.ratePerSecond === 0;
  }

  /** At least 1 message may pass; 0 on abort. */
  async take(wanted: number, signal: AbortSignal): Promise<number> {
    const { log, ratePerSecond } = this.options;
    if (this.unlimited) return wanted;
    const warn = (error: unknown) =>
      log.warn(
        { error },
        'KV is unavailable: this agent limits itself to its share of instance_ingest_rate.',
      );
    while (!signal.aborted) {
      const { granted, waitMs } = await this.#buckets.take(
        'ingest',
        ratePerSecond,
        wanted,
        ratePerSecond,
        warn,
      );
      if (granted > 0) return granted;
      await new Promise<void>((resolve) => setTimeout(resolve, Math.min(Math.max(waitMs, 5), 250)));
    }
    return 0;
  }
}
