/** Estimates the clock of Postgres, by which all agents sign and record. */
export class Clock {
  /** Corrected wall clock minus monotonic clock. A step of the wall clock does not change it. */
  #originMs = Date.now() - performance.now();
  /** Milliseconds by which Postgres is at least ahead of this machine; negative: behind. */
  offsetMs = 0;

  now(): number {
    return Math.round(this.#originMs + performance.now());
  }

  /**
   * Adjusts the estimate. Postgres read its clock between request and response; an estimate within
   * that span is kept.
   *
   * @param askedAtMs when Postgres was queried, on the monotonic clock
   */
  adjust(postgresMs: number, askedAtMs: number): void {
    const nowMs = performance.now();
    const nearest = (originMs: number) =>
      Math.min(postgresMs - askedAtMs, Math.max(postgresMs - nowMs, originMs));
    this.#originMs = nearest(this.#originMs);
    const wallOriginMs = Date.now() - nowMs;
    this.offsetMs = Math.round(nearest(wallOriginMs) - wallOriginMs);
  }
}
