/** A project that needed nothing for a while may at once use what it has for this part of a second. */
const BURST_SECONDS = 1 / 10;
/** Each such part of a message counts as an event of its project. */
const BYTES_PER_EVENT = 16 * 1024;

/** What events count for, by their number and the bytes of all of them. */
export function workOfEvents(events: number, bytes: number): number {
  return events + Math.floor(bytes / BYTES_PER_EVENT);
}

/** Counts work by project, and tells which project is over its share: its work waits, so that that of others does not. */
export class ProjectPace {
  readonly #projects = new Map<string, { readonly done: number; readonly atMs: number }>();

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
    return [...this.#projects.keys()].filter((id) => this.isOver(id));
  }

  isOver(projectId: string): boolean {
    return this.#projects.has(projectId) && this.#doneFor(projectId, performance.now()) > this.perSecond * this.burstSeconds;
  }

  /**
   * Counts work of a project, or less than zero for what was counted and not done. Returns after how many milliseconds it is the turn of this work: when what was
   * counted before is within the share.
   */
  add(projectId: string, work: number): number {
    if (this.perSecond === 0 || work === 0) return 0;
    const atMs = performance.now();
    const before = this.#doneFor(projectId, atMs);
    this.#projects.set(projectId, { done: Math.max(0, before + work), atMs });
    return Math.max(0, (before / this.perSecond - this.burstSeconds) * 1000);
  }

  #doneFor(projectId: string, nowMs: number): number {
    const project = this.#projects.get(projectId);
    return project ? Math.max(0, project.done - ((nowMs - project.atMs) * this.perSecond) / 1000) : 0;
  }
}
