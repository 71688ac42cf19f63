/** A project that needed nothing for a while may at once use what it has for this part of a second. */
const BURST_SECONDS = 1 / 10;

/** Counts work by project, and tells which project is over its share: its work waits, so that that of others does not. */
export class ProjectPace {
  readonly #projects = new Map<string, { readonly done: number; readonly atMs: number }>();

  /** @param perSecond work that this agent does for one project; 0: any amount */
  constructor(private readonly perSecond: number) {}

  /** The projects whose events have to wait now. */
  get over(): readonly string[] {
    return [...this.#projects.keys()].filter((id) => this.isOver(id));
  }

  isOver(projectId: string): boolean {
    return this.#projects.has(projectId) && this.#doneFor(projectId, performance.now()) > this.perSecond * BURST_SECONDS;
  }

  add(projectId: string, work: number): void {
    if (this.perSecond === 0 || work === 0) return;
    const atMs = performance.now();
    this.#projects.set(projectId, { done: this.#doneFor(projectId, atMs) + work, atMs });
  }

  #doneFor(projectId: string, nowMs: number): number {
    const project = this.#projects.get(projectId);
    return project ? Math.max(0, project.done - ((nowMs - project.atMs) * this.perSecond) / 1000) : 0;
  }
}
