/** A project that needed nothing for a while may at once use what it has for this part of a second. */
const BURST_SECONDS = 1 / 10;
/** Each such part of a message counts as an event of its project. */
const BYTES_PER_EVENT = 16 * 1024;

/** What events count for, by their number and the bytes of all of them. */
export function workOfEvents(events: number, bytes: number): number {
  return events + Math.floor(bytes / BYTES_PER_EVENT);
}

/** A bucket per project: counts its work, and tells when it is over its share. Its work then waits, so that that of others does not. */
export class ProjectPace {
  /** By project: when what was counted is done, at the pace of its share and by the monotonic clock. */
  readonly #doneAtMs = new Map<string, number>();

  /**
   * @param perSecond work that this process does for one project; 0: any amount
   * @param burstSeconds for how long of it a project that needed nothing for a while may do at once
   */
  constructor(
    private readonly perSecond: number,
    private readonly burstSeconds = BURST_SECONDS,
  ) {}

  /** The projects whose events have to wait now. */
  get over(): readonly string[] {
    return [...this.#doneAtMs.keys()].filter((id) => this.isOver(id));
  }

  isOver(projectId: string): boolean {
    return this.waitMs(projectId) > 0;
  }

  /** Milliseconds until what was counted for a project is within its share. */
  waitMs(projectId: string, nowMs = performance.now()): number {
    return Math.max(0, (this.#doneAtMs.get(projectId) ?? 0) - nowMs - this.burstSeconds * 1000);
  }

  /**
   * Counts work of a project, or less than zero for what was counted and not done. Returns after how many milliseconds it is the turn of this work: when what was
   * counted before is within the share.
   */
  add(projectId: string, work: number): number {
    if (this.perSecond === 0 || work === 0) return 0;
    const nowMs = performance.now();
    const waitMs = this.waitMs(projectId, nowMs);
    const doneAtMs = Math.max(nowMs, this.#doneAtMs.get(projectId) ?? 0) + (work * 1000) / this.perSecond;
    this.#doneAtMs.set(projectId, Math.max(nowMs, doneAtMs));
    return waitMs;
  }

  delete(projectId: string): void {
    this.#doneAtMs.delete(projectId);
  }
}
