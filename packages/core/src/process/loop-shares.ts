import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { ProjectPace } from './project-pace.js';
import { inSlices } from './slices.js';

/** Milliseconds that a project has at once. */
const AT_ONCE_MS = 2;
/** How long projects share the event loop after work of two of them. */
const SHARING_MS = 1_000;
/** How often work that waits looks whether it may go on. */
export const SHARES_LOOK_MS = 2;

/**
 * Shares of the event loop, by project. A message passes several turns of the loop until it is delivered, and waits in each for what others do there: work of a
 * project that is over its share waits, so that turns are short for everybody else. A project that is alone has all of it.
 */
export class LoopShares {
  readonly #pace: ProjectPace;
  #lastProject: string | undefined;
  #sharedUntilMs = 0;

  /** @param msPerSecond `limits.event_loop_ms`; 0: any number */
  constructor(msPerSecond: number) {
    this.#pace = new ProjectPace(msPerSecond, msPerSecond === 0 ? 0 : AT_ONCE_MS / msPerSecond);
  }

  isOver(projectId: string): boolean {
    return performance.now() < this.#sharedUntilMs && this.#pace.isOver(projectId);
  }

  /** Does work of a project at once, and counts its time. */
  run<Result>(projectId: string, work: () => Result): Result {
    const startedAtMs = performance.now();
    try {
      return work();
    } finally {
      this.#count(projectId, performance.now() - startedAtMs);
    }
  }

  /** Does work of a project in slices, as its share allows. Resolves and rejects as `inSlices`. */
  runInSlices<Result>(projectId: string, steps: Generator<unknown, Result>): Promise<Result> {
    const pause = async () => {
      await nextTurn();
      while (this.isOver(projectId)) await sleep(SHARES_LOOK_MS);
    };
    return inSlices(steps, (ms) => this.#count(projectId, ms), pause);
  }

  #count(projectId: string, ms: number): void {
    const nowMs = performance.now();
    if (this.#lastProject !== undefined && this.#lastProject !== projectId) this.#sharedUntilMs = nowMs + SHARING_MS;
    this.#lastProject = projectId;
    if (nowMs < this.#sharedUntilMs) this.#pace.add(projectId, ms);
  }
}
