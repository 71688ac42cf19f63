/** Burst of an idle project. */
const BURST_SECONDS = 1 / 10;
/** Each 16 KB of a message counts as one event. */
const BYTES_PER_EVENT = 16 * 1024;

/** Returns the work of events. */
export function workOfEvents(events: number, bytes: number): number {
  return events + Math.floor(bytes / BYTES_PER_EVENT);
}

/** A token bucket per project. Work over the share waits, so other projects' work does not. */
export class ProjectPace {
  /** Monotonic time when the counted work is done at the share's pace. */
  readonly #doneAtMs = new Map<string, number>();

  /**
   * @param perSecond work of one project in this process; 0: unlimited
   * @param burstSeconds maximum burst of an idle project
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

  /** Returns the time until the counted work is within the share. */
  waitMs(projectId: string, nowMs = performance.now()): number {
    return Math.max(0, (this.#doneAtMs.get(projectId) ?? 0) - nowMs - this.burstSeconds * 1000);
  }

  /**
   * Counts work, or cancels undone work if negative. Returns the milliseconds until this work may
   * run: when earlier work is within the share.
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
