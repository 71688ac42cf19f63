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
   * Takes over the time of Postgres. It answered between the question and now, so any estimate within that span stays: a slow answer, or a wall clock that is set,
   * moves nothing.
   *
   * @param askedAtMs when Postgres was asked, by the monotonic clock
   */
  adjust(postgresMs: number, askedAtMs: number): void {
    const nowMs = performance.now();
    const nearest = (originMs: number) => Math.min(postgresMs - askedAtMs, Math.max(postgresMs - nowMs, originMs));
    this.#originMs = nearest(this.#originMs);
    const wallOriginMs = Date.now() - nowMs;
    this.offsetMs = Math.round(nearest(wallOriginMs) - wallOriginMs);
  }
}
