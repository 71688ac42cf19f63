import type { Rate } from '@gateway/core/process';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { SharedBuckets } from '@gateway/store/kv';
import type { AgentLease } from '../model/lease.js';
import type { QueuesInFlight } from './endpoint-queue.js';

const ASK_MS = 50;
const TOKENS_MS = 1_000;
/** Deliveries waiting for tokens in memory, in seconds of the endpoint's rate limit. */
const HELD_SECONDS = 2;
const HELD_MAX = 100;
/** Limited, because the rate limit may change in the meantime. */
const SLOT_MAX_MS = 600_000;
/** An idle endpoint's state is then dropped. */
const FORGET_MS = 600_000;

interface TokenState {
  tokens: number;
  tokensUntilMs: number;
  askAtMs: number;
  isAsking: boolean;
  slotAtMs: number;
  usedAtMs: number;
}

interface RateLimitsOptions {
  readonly buckets: SharedBuckets;
  readonly lease: Pick<AgentLease, 'agents'>;
  readonly inFlight: Pick<QueuesInFlight, 'wake'>;
}

/** Tokens are taken in batches, and excess deliveries are postponed. */
export class RateLimits {
  readonly #states = new Map<string, TokenState>();

  constructor(private readonly options: RateLimitsOptions) {}

  /** If no token is left, returns false, requests tokens, and then wakes the queue. */
  take({ id }: Pick<Endpoint, 'id'>, limit: Rate, waiting: number, nowMs: number): boolean {
    const state = this.#state(id, nowMs);
    if (state.tokens > 0 && nowMs < state.tokensUntilMs) {
      state.tokens--;
      return true;
    }
    if (!state.isAsking) {
      state.isAsking = true;
      const wanted = Math.min(waiting, limit.burst);
      if (nowMs >= state.askAtMs) void this.#ask(id, state, limit, wanted);
      else
        setTimeout(() => void this.#ask(id, state, limit, wanted), state.askAtMs - nowMs).unref();
    }
    return false;
  }

  room({ perSecond }: Rate): number {
    return Math.max(1, Math.min(HELD_MAX, Math.ceil(perSecond * HELD_SECONDS)));
  }

  /**
   * When `count` deliveries are due: after those already postponed and those that wait in
   * memory.
   */
  slots(
    { id }: Pick<Endpoint, 'id'>,
    limit: Rate,
    count: number,
    waiting: number,
    nowMs: number,
  ): { dueInMs: number; paceMs: number } {
    const state = this.#state(id, nowMs);
    const paceMs = (1_000 * Math.max(1, this.options.lease.agents)) / limit.perSecond;
    const from = Math.min(Math.max(state.slotAtMs, nowMs + waiting * paceMs), nowMs + SLOT_MAX_MS);
    state.slotAtMs = from + count * paceMs;
    return { dueInMs: Math.round(from - nowMs), paceMs };
  }

  forget(nowMs: number): void {
    for (const [id, { usedAtMs }] of this.#states)
      if (nowMs - usedAtMs > FORGET_MS) this.#states.delete(id);
  }

  #state(id: string, nowMs: number): TokenState {
    let state = this.#states.get(id);
    if (!state)
      this.#states.set(
        id,
        (state = {
          tokens: 0,
          tokensUntilMs: 0,
          askAtMs: 0,
          isAsking: false,
          slotAtMs: 0,
          usedAtMs: nowMs,
        }),
      );
    state.usedAtMs = nowMs;
    return state;
  }

  async #ask(id: string, state: TokenState, limit: Rate, wanted: number): Promise<void> {
    const { buckets, inFlight } = this.options;
    const { granted, waitMs } = await buckets.take(`endpoint:${id}`, Math.max(1, wanted), limit);
    const nowMs = performance.now();
    state.isAsking = false;
    state.tokens = granted;
    state.tokensUntilMs = nowMs + TOKENS_MS;
    state.askAtMs = nowMs + Math.max(ASK_MS, waitMs);
    if (granted > 0) inFlight.wake(id);
    else setTimeout(() => inFlight.wake(id), state.askAtMs - nowMs).unref();
  }
}
