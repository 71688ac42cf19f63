import { MemoryKv, type Kv } from '@gateway/store/kv';
import type { Endpoint, Limit } from '../config/config-cache.js';
import type { EndpointQueues } from '../model/delivery.js';
import type { AgentLease } from '../model/lease.js';

/** Interval between requests for tokens, per endpoint. */
const ASK_MS = 50;
/** Unused tokens are void after this. */
const TOKENS_MS = 1_000;
/** Interval before a KV that failed is asked again. */
const REST_MS = 2_000;
/** Deliveries that wait in memory for tokens: those of the next seconds. */
const HELD_SECONDS = 2;
const HELD_MAX = 100;
/** Longest postponement: the limit may be changed meanwhile. */
const SLOT_MAX_MS = 600_000;
/** An endpoint that was not asked about for this long is forgotten. */
const FORGET_MS = 600_000;

interface State {
  tokens: number;
  tokensUntilMs: number;
  askAtMs: number;
  isAsking: boolean;
  /** When the next postponed delivery is due. */
  slotAtMs: number;
  usedAtMs: number;
}

export interface RateLimitsOptions {
  readonly kv: Kv;
  /** While KV is away each agent keeps to its share. */
  readonly lease: Pick<AgentLease, 'agents'>;
  readonly inFlight: Pick<EndpointQueues, 'wake'>;
}

/**
 * The rate limits of endpoints. All agents take tokens from one bucket per endpoint in KV, for many deliveries at a time. Deliveries beyond the limit are
 * postponed, each to its turn. While KV is away each agent keeps to its share of the rate.
 */
export class RateLimits {
  readonly #options: RateLimitsOptions;
  readonly #states = new Map<string, State>();
  readonly #own = new MemoryKv();
  #restUntilMs = 0;

  constructor(options: RateLimitsOptions) {
    this.#options = options;
  }

  /** Takes a token for one request. If none is left, it asks for some and wakes the queue of the endpoint when they are here. */
  take({ id }: Pick<Endpoint, 'id'>, limit: Limit, waiting: number, nowMs: number): boolean {
    const state = this.#state(id, nowMs);
    if (state.tokens > 0 && nowMs < state.tokensUntilMs) {
      state.tokens--;
      return true;
    }
    if (!state.isAsking) {
      state.isAsking = true;
      const wanted = Math.min(waiting, limit.burst);
      if (nowMs >= state.askAtMs) void this.#ask(id, state, limit, wanted);
      else setTimeout(() => void this.#ask(id, state, limit, wanted), state.askAtMs - nowMs).unref();
    }
    return false;
  }

  /** How many deliveries of an endpoint may wait in memory for tokens. */
  room({ perSecond }: Limit): number {
    return Math.max(1, Math.min(HELD_MAX, Math.ceil(perSecond * HELD_SECONDS)));
  }

  /** When `count` deliveries without room are due: at the pace of the limit, behind those postponed before and the `held` ones that wait in memory. */
  slots({ id }: Pick<Endpoint, 'id'>, limit: Limit, count: number, held: number, nowMs: number): { dueInMs: number; paceMs: number } {
    const state = this.#state(id, nowMs);
    const paceMs = 1_000 / this.#share(limit.perSecond);
    const from = Math.min(Math.max(state.slotAtMs, nowMs + held * paceMs), nowMs + SLOT_MAX_MS);
    state.slotAtMs = from + count * paceMs;
    return { dueInMs: Math.round(from - nowMs), paceMs };
  }

  forget(nowMs: number): void {
    for (const [id, { usedAtMs }] of this.#states) if (nowMs - usedAtMs > FORGET_MS) this.#states.delete(id);
  }

  #state(id: string, nowMs: number): State {
    let state = this.#states.get(id);
    if (!state) this.#states.set(id, (state = { tokens: 0, tokensUntilMs: 0, askAtMs: 0, isAsking: false, slotAtMs: 0, usedAtMs: nowMs }));
    state.usedAtMs = nowMs;
    return state;
  }

  #share(perSecond: number): number {
    return perSecond / Math.max(1, this.#options.lease.agents);
  }

  async #ask(id: string, state: State, limit: Limit, wanted: number): Promise<void> {
    const { granted, waitMs } = await this.#takeTokens(id, limit, Math.max(1, wanted));
    const nowMs = performance.now();
    state.isAsking = false;
    state.tokens = granted;
    state.tokensUntilMs = nowMs + TOKENS_MS;
    state.askAtMs = nowMs + Math.max(ASK_MS, waitMs);
    if (granted > 0) this.#options.inFlight.wake(id);
    else setTimeout(() => this.#options.inFlight.wake(id), state.askAtMs - nowMs).unref();
  }

  async #takeTokens(id: string, { perSecond, burst }: Limit, wanted: number): Promise<{ granted: number; waitMs: number }> {
    const bucket = `endpoint:${id}`;
    if (performance.now() >= this.#restUntilMs) {
      try {
        return await this.#options.kv.takeTokens(bucket, perSecond, wanted, burst);
      } catch {
        this.#restUntilMs = performance.now() + REST_MS;
      }
    }
    const agents = Math.max(1, this.#options.lease.agents);
    return this.#own.takeTokens(bucket, this.#share(perSecond), wanted, Math.max(1, burst / agents));
  }
}
