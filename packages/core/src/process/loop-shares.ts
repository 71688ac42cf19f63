import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { inSlices } from './slices.js';
import { TokenBuckets } from './token-buckets.js';

const AT_ONCE_MS = 2;
/** Shares are enforced for this long after work has alternated between projects. */
const SHARING_MS = 1_000;
/** Waiting work checks at this interval whether it may continue. */
export const SHARES_LOOK_MS = 2;

/**
 * Limits each project's time on the event loop. A message takes several turns, each delayed by
 * other work. Work of a project over its share waits, which keeps turns short for other projects. A
 * project that works alone is not limited.
 */
export class LoopShares {
  readonly #pace: TokenBuckets;
  #lastProject: string | undefined;
  #sharedUntilMs = 0;

  /** @param msPerSecond `limits.event_loop_ms`; 0 means unlimited */
  constructor(msPerSecond: number) {
    this.#pace = new TokenBuckets(msPerSecond, AT_ONCE_MS);
  }

  isOver(projectId: string): boolean {
    return performance.now() < this.#sharedUntilMs && this.#pace.isOver(projectId);
  }

  /** Synchronous; counts its time. */
  run<Result>(projectId: string, work: () => Result): Result {
    const startedAtMs = performance.now();
    try {
      return work();
    } finally {
      this.#count(projectId, performance.now() - startedAtMs);
    }
  }

  /** Pauses while the project is over its share. Settles like `inSlices`. */
  runInSlices<Result>(projectId: string, steps: Generator<unknown, Result>): Promise<Result> {
    const pause = async () => {
      await nextTurn();
      while (this.isOver(projectId)) await sleep(SHARES_LOOK_MS);
    };
    return inSlices(steps, (ms) => this.#count(projectId, ms), pause);
  }

  #count(projectId: string, ms: number): void {
    const nowMs = performance.now();
    if (this.#lastProject !== undefined && this.#lastProject !== projectId)
      this.#sharedUntilMs = nowMs + SHARING_MS;
    this.#lastProject = projectId;
    if (nowMs < this.#sharedUntilMs) this.#pace.add(projectId, ms);
  }
}
