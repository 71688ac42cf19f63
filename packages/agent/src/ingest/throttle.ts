import type { Log } from '@gateway/core/logging';
import { MemoryKv, type Kv } from '@gateway/store/kv';
import type { AgentLease } from '../model/lease.js';

export interface ThrottleOptions {
  readonly kv: Kv;
  /** Messages a second; 0: unlimited. */
  readonly ratePerSecond: number;
  readonly lease: Pick<AgentLease, 'agents'>;
  readonly log: Log;
}

/** The ingest rate of the whole instance. All agents take from one bucket in KV; while KV is away each keeps to its share. It delays messages, and loses none. */
export class Throttle {
  readonly #options: ThrottleOptions;
  readonly #own = new MemoryKv();
  #kvAway = false;

  constructor(options: ThrottleOptions) {
    this.#options = options;
  }

  get unlimited(): boolean {
    return this.#options.ratePerSecond === 0;
  }

  /** Waits until at least one of the wanted messages may pass, and resolves with how many; 0 if the signal aborts. */
  async take(wanted: number, signal: AbortSignal): Promise<number> {
    if (this.unlimited) return wanted;
    while (!signal.aborted) {
      const { granted, waitMs } = await this.#takeTokens(wanted);
      if (granted > 0) return granted;
      await new Promise<void>((resolve) => setTimeout(resolve, Math.min(Math.max(waitMs, 5), 250)));
    }
    return 0;
  }

  async #takeTokens(wanted: number): Promise<{ granted: number; waitMs: number }> {
    const { kv, ratePerSecond, lease, log } = this.#options;
    try {
      const answer = await kv.takeTokens('ingest', ratePerSecond, wanted);
      this.#kvAway = false;
      return answer;
    } catch (error) {
      if (!this.#kvAway) log.warn({ error }, 'KV is away: this agent keeps to its own share of instance_ingest_rate.');
      this.#kvAway = true;
      return this.#own.takeTokens('ingest', Math.max(1, ratePerSecond / Math.max(1, lease.agents)), wanted);
    }
  }
}
