/** Each 16 KB counts as one more event. */
const BYTES_PER_EVENT = 16 * 1024;

/** In small events. */
export function workOfEvents(events: number, bytes: number): number {
  return events + Math.floor(bytes / BYTES_PER_EVENT);
}

export interface Rate {
  /** 0 for no limit. */
  readonly perSecond: number;
  /** At once, after an idle period. */
  readonly burst: number;
}

export interface TakenTokens {
  readonly granted: number;
  readonly left: number;
  /** Until the next token; 0 if any was granted. */
  readonly waitMs: number;
}

/**
 * Names may come from requests. Beyond this many, the least recently used bucket is forgotten, and
 * starts full again.
 */
const BUCKETS_MAX = 100_000;
/** Tokens come back in fractions, whose sum is not exact. */
const ROUNDING = 1e-6;

/**
 * A token bucket for each name, such as that of a project, in this process. A bucket is the time at
 * which it is full again.
 */
export class TokenBuckets {
  readonly #fullAtMs = new Map<string, number>();
  readonly #rate: Rate;

  /** @param burst by default, what comes back within 100 ms */
  constructor(perSecond = 0, burst = perSecond / 10) {
    this.#rate = { perSecond, burst };
  }

  /** Buckets in debt. */
  get over(): readonly string[] {
    return [...this.#fullAtMs.keys()].filter((name) => this.isOver(name));
  }

  isOver(name: string): boolean {
    return this.waitMs(name) > 0;
  }

  /** Until the bucket is out of debt. */
  waitMs(name: string, nowMs = performance.now()): number {
    const fullAtMs = this.#fullAtMs.get(name);
    if (fullAtMs === undefined) return 0;
    const { perSecond, burst } = this.#rate;
    return Math.max(0, fullAtMs - nowMs - (burst * 1000) / perSecond);
  }

  /**
   * Counts work that is done in any case, if need be as debt. A negative amount refunds work that
   * was not done. Returns how long this work should wait for the debt of earlier work.
   */
  add(name: string, work: number): number {
    const { perSecond } = this.#rate;
    if (perSecond === 0 || work === 0) return 0;
    const nowMs = performance.now();
    const waitMs = this.waitMs(name, nowMs);
    const fromMs = Math.max(nowMs, this.#fullAtMs.get(name) ?? 0);
    this.#put(name, Math.max(nowMs, fromMs + (work * 1000) / perSecond));
    return waitMs;
  }

  /** Takes up to `wanted` whole tokens, never as debt. */
  take(name: string, wanted: number, { perSecond, burst }: Rate = this.#rate): TakenTokens {
    const nowMs = performance.now();
    const eachMs = 1000 / perSecond;
    const usedMs = Math.max(0, (this.#fullAtMs.get(name) ?? 0) - nowMs);
    const tokens = burst - usedMs / eachMs + ROUNDING;
    const granted = Math.max(0, Math.min(wanted, Math.floor(tokens)));
    this.#fullAtMs.delete(name);
    this.#put(name, nowMs + usedMs + granted * eachMs);
    const left = Math.max(0, Math.floor(tokens - granted));
    return { granted, left, waitMs: granted > 0 ? 0 : Math.ceil((1 - tokens) * eachMs) };
  }

  delete(name: string): void {
    this.#fullAtMs.delete(name);
  }

  #put(name: string, fullAtMs: number): void {
    this.#fullAtMs.set(name, fullAtMs);
    if (this.#fullAtMs.size <= BUCKETS_MAX) return;
    const [oldest] = this.#fullAtMs.keys();
    this.#fullAtMs.delete(oldest!);
  }
}
