import type { AgentContext } from '../config/agent-context.js';
import { TokenBuckets, type TokenBucketsOptions } from './rate-limits.js';

interface ThrottleOptions extends TokenBucketsOptions, Pick<AgentContext, 'log'> {
  /** Messages a second; 0: unlimited. */
  readonly ratePerSecond: number;
}

/** The ingest rate limit of the instance, in a KV bucket. It delays messages and loses none. */
export class Throttle {
  readonly #buckets: TokenBuckets;

  constructor(private readonly options: ThrottleOptions) {
    this.#buckets = new TokenBuckets(options);
  }

  get unlimited(): boolean {
    return this.options.ratePerSecond === 0;
  }

  /** Resolves with how many messages may pass, at least one; 0 if the signal aborts. */
  async take(wanted: number, signal: AbortSignal): Promise<number> {
    const { log, ratePerSecond } = this.options;
    if (this.unlimited) return wanted;
    const warn = (error: unknown) =>
      log.warn({ error }, 'KV is away: this agent keeps to its own share of instance_ingest_rate.');
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
