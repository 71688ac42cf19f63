/** The time of Postgres, as far as this machine's differs from it: signatures and records of all agents then agree. */
export class Clock {
  /** Corrected wall clock minus monotonic clock, so that a step of the wall clock does not move it. */
  #originMs = Date.now() - performance.now();
  /** Milliseconds that Postgres' clock is known to be ahead of this machine's at least; negative if behind. */
  offsetMs = 0;

  now(): number {
    return Math.round(this.#originMs + performance.now());
  }

  /**
   * @param askedAtMs when Postgres was asked for its time, by the monotonic clock: it answered between then and now, so a smaller difference is none, and the wall
   * clock may have been set meanwhile
   */
  adjust(postgresMs: number, askedAtMs: number): void {
    const nowMs = performance.now();
    const wallOriginMs = Date.now() - nowMs;
    this.#originMs = Math.min(postgresMs - askedAtMs, Math.max(postgresMs - nowMs, wallOriginMs));
    this.offsetMs = Math.round(this.#originMs - wallOriginMs);
  }
}
