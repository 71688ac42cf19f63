/** All agents sign requests and record times by the Postgres clock, which this estimates. */
export class Clock {
  /** The Postgres clock minus the monotonic clock. Unaffected by changes to the wall clock. */
  #originMs = Date.now() - performance.now();
  /** How far Postgres is at least ahead of this machine; negative if it is behind. */
  offsetMs = 0;

  now(): number {
    return Math.round(this.#originMs + performance.now());
  }

  /**
   * Postgres read its clock between the request and the response, so an estimate within that span
   * is kept.
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
