/** For an idle project, in seconds of its share. */
const BURST_SECONDS = 1 / 10;
/** Each 16 KB counts as one more event. */
const BYTES_PER_EVENT = 16 * 1024;

/** In small events. */
export function workOfEvents(events: number, bytes: number): number {
  return events + Math.floor(bytes / BYTES_PER_EVENT);
}

/** A token bucket per project, so that a project over its share does not delay the others. */
export class ProjectPace {
  /** On the monotonic clock: when each project's counted work is done, at the pace of its share. */
  readonly #doneAtMs = new Map<string, number>();

  /**
   * @param perSecond the work allowed per project and second in this process; 0 means unlimited
   * @param burstSeconds the burst allowed to an idle project, in seconds of its share
   */
  constructor(
    private readonly perSecond: number,
    private readonly burstSeconds = BURST_SECONDS,
  ) {}

  get over(): readonly string[] {
    return [...this.#doneAtMs.keys()].filter((id) => this.isOver(id));
  }

  isOver(projectId: string): boolean {
    return this.waitMs(projectId) > 0;
  }

  /** 0 once the project's counted work is within its share. */
  waitMs(projectId: string, nowMs = performance.now()): number {
    return Math.max(0, (this.#doneAtMs.get(projectId) ?? 0) - nowMs - this.burstSeconds * 1000);
  }

  /**
   * A negative amount refunds work that was not done. Returns the milliseconds until earlier work
   * is within the share, so that this work may run.
   */
  add(projectId: string, work: number): number {
    if (this.perSecond === 0 || work === 0) return 0;
    const nowMs = performance.now();
    const waitMs = this.waitMs(projectId, nowMs);
    const doneAtMs =
      Math.max(nowMs, this.#doneAtMs.get(projectId) ?? 0) + (work * 1000) / this.perSecond;
    this.#doneAtMs.set(projectId, Math.max(nowMs, doneAtMs));
    return waitMs;
  }

  delete(projectId: string): void {
    this.#doneAtMs.delete(projectId);
  }
}
