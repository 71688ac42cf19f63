/** Each project's next due time, so that the claimer sleeps instead of polling. */
export class DueTimes {
  readonly #atMs = new Map<string, number>();
  #onEarlier = (): void => {};

  onEarlier(listener: () => void): void {
    this.#onEarlier = listener;
  }

  has(projectId: string): boolean {
    return this.#atMs.has(projectId);
  }

  /** Ignores Infinity and times after the recorded one. */
  add(projectId: string, inMs: number): void {
    if (!Number.isFinite(inMs)) return;
    const atMs = performance.now() + Math.max(0, inMs);
    if ((this.#atMs.get(projectId) ?? Infinity) <= atMs) return;
    this.#atMs.set(projectId, atMs);
    this.#onEarlier();
  }

  addAll(projectIds: Iterable<string>): void {
    const nowMs = performance.now();
    for (const projectId of projectIds) this.#atMs.set(projectId, nowMs);
    this.#onEarlier();
  }

  /** Infinity if there is none. */
  nextInMs(): number {
    let nextAtMs = Infinity;
    for (const atMs of this.#atMs.values()) if (atMs < nextAtMs) nextAtMs = atMs;
    return nextAtMs - performance.now();
  }

  *takeDue(nowMs: number): Generator<string> {
    for (const [projectId, atMs] of this.#atMs) {
      if (atMs > nowMs) continue;
      this.#atMs.delete(projectId);
      yield projectId;
    }
  }
}
