import type { Log } from '@gateway/core/logging';
import type { Kv } from '@gateway/store/kv';
import { MemoryKv } from '@gateway/store/kv';
import type { AgentLease } from '../model/lease.js';

/**
 * The ingest rate of the whole instance: all agents take from one bucket in KV. Reaching it delays messages, it never loses one. While KV is
 * away each agent keeps to its share of the rate on its own.
 */
export class Throttle {
  readonly #kv: Kv;
  readonly #rate: number;
  readonly #lease: Pick<AgentLease, 'agents'>;
  readonly #log: Log;
  readonly #own = new MemoryKv();
  #kvAway = false;

  /** @param ratePerSecond 0: unlimited */
  constructor({ kv, ratePerSecond, lease, log }: { kv: Kv; ratePerSecond: number; lease: Pick<AgentLease, 'agents'>; log: Log }) {
    this.#kv = kv;
    this.#rate = ratePerSecond;
    this.#lease = lease;
    this.#log = log;
  }

  get unlimited(): boolean {
    return this.#rate === 0;
  }

  /** Waits until at least one of the wanted messages may pass; resolves with how many may. 0 when the signal aborts. */
  async take(wanted: number, signal: AbortSignal): Promise<number> {
    if (this.#rate === 0) return wanted;
    while (!signal.aborted) {
      const { granted, waitMs } = await this.#takeTokens(wanted);
      if (granted > 0) return granted;
      await new Promise<void>((resolve) => setTimeout(resolve, Math.min(Math.max(waitMs, 5), 250)));
    }
    return 0;
  }

  async #takeTokens(wanted: number): Promise<{ granted: number; waitMs: number }> {
    try {
      const answer = await this.#kv.takeTokens('ingest', this.#rate, wanted);
      this.#kvAway = false;
      return answer;
    } catch (error) {
      if (!this.#kvAway) this.#log.warn({ error }, 'KV is away: this agent keeps to its own share of instance_ingest_rate.');
      this.#kvAway = true;
      return this.#own.takeTokens('ingest', Math.max(1, this.#rate / Math.max(1, this.#lease.agents)), wanted);
    }
  }
}
