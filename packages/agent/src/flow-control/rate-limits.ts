import { MemoryKv, type Kv } from '@gateway/store/kv';
import type { Endpoint, Limit } from '../config/config-cache.js';

/** Tokens are asked for at most so often per endpoint, for all that waits. */
const ASK_MS = 50;
/** Tokens that were got and not used are void after this: what they were for is gone. */
const TOKENS_MS = 1_000;
/** KV that has failed is not asked again for so long. */
const REST_MS = 2_000;
/** Deliveries that wait here for their tokens are those of the next so many seconds. */
const HELD_SECONDS = 2;
const HELD_MAX = 100;
/** Nobody is put off for longer at once: the limit may be changed meanwhile. */
const SLOT_MAX_MS = 600_000;
/** What is known of an endpoint is forgotten when nobody has asked for so long. */
const FORGET_MS = 600_000;

interface State {
  tokens: number;
  tokensUntilMs: number;
  askAtMs: number;
  isAsking: boolean;
  /** When the next delivery that is put off is due. */
  slotAtMs: number;
  usedAtMs: number;
}

export interface RateLimitsOptions {
  readonly kv: Kv;
  /** How many agents run: while KV is away each keeps to its share. */
  readonly agents: () => number;
  /** There may be tokens for an endpoint. */
  readonly onTokens: (endpointId: string) => void;
}

/**
 * The rate limits of endpoints: all agents take from one bucket per endpoint in KV, for many deliveries at a time. What is beyond the limit is put off, each delivery to
 * the time when its turn comes. While KV is away each agent keeps to its share of the rate.
 */
export class RateLimits {
  readonly #options: RateLimitsOptions;
  readonly #states = new Map<string, State>();
  readonly #own = new MemoryKv();
  #restUntilMs = 0;

  constructor(options: RateLimitsOptions) {
    this.#options = options;
  }

  /** Takes the token of one request, of those at hand. When there is none, tokens for what waits are on their way: `onTokens` tells. */
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

  /** How many deliveries of an endpoint may wait in memory for their tokens. */
  room({ perSecond }: Limit): number {
    return Math.max(1, Math.min(HELD_MAX, Math.ceil(perSecond * HELD_SECONDS)));
  }

  /**
   * When deliveries are due that have no room here: one after the other at the pace of the limit, behind those that were put off before.
   *
   * @param count how many they are
   * @param held how many wait here, and come first
   */
  slots({ id }: Pick<Endpoint, 'id'>, limit: Limit, count: number, held: number, nowMs: number): { dueInMs: number; paceMs: number } {
    const state = this.#state(id, nowMs);
    const paceMs = 1_000 / this.#share(limit.perSecond);
    const from = Math.min(Math.max(state.slotAtMs, nowMs + held * paceMs), nowMs + SLOT_MAX_MS);
    state.slotAtMs = from + count * paceMs;
    return { dueInMs: Math.round(from - nowMs), paceMs };
  }

  /** Forgets endpoints that nobody has asked about for long. */
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
    return perSecond / Math.max(1, this.#options.agents());
  }

  async #ask(id: string, state: State, limit: Limit, wanted: number): Promise<void> {
    const { granted, waitMs } = await this.#takeTokens(id, limit, Math.max(1, wanted));
    const nowMs = performance.now();
    state.isAsking = false;
    state.tokens = granted;
    state.tokensUntilMs = nowMs + TOKENS_MS;
    state.askAtMs = nowMs + Math.max(ASK_MS, waitMs);
    if (granted > 0) this.#options.onTokens(id);
    else setTimeout(() => this.#options.onTokens(id), state.askAtMs - nowMs).unref();
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
    const agents = Math.max(1, this.#options.agents());
    return this.#own.takeTokens(bucket, this.#share(perSecond), wanted, Math.max(1, burst / agents));
  }
}
