import type { Progress } from './progress.js';

/** A child that neither runs a function nor gets on, although it has work, is given up after this time. */
export const STUCK_MS = 10_000;

export interface DeadlineWatch {
  /** Milliseconds between two calls of `look`. */
  readonly everyMs: number;
  /** Looks at the child; to be called every `everyMs` while it has work. `overran` names the call that has run past the deadline. */
  look(progress: Progress, sinceLastMs: number): { state: 'fine' | 'stuck' } | { state: 'overran'; call: number };
}

/**
 * Measures from outside how long a child has been at the same call. The time is that of the looks: a call is over its deadline when it was
 * seen running for that long. So it is stopped at most one interval late and never early, and when the whole machine stood still, or the
 * parent was busy, the call is not blamed for it.
 */
export function watchDeadline(deadlineMs: number): DeadlineWatch {
  const everyMs = Math.min(200, Math.max(5, Math.ceil(deadlineMs / 10)));
  let seen: Progress = { chunk: 0, call: undefined };
  let seenForMs = 0;
  return {
    everyMs,
    look(progress, sinceLastMs) {
      if (progress.chunk !== seen.chunk || progress.call !== seen.call) {
        seen = progress;
        seenForMs = 0;
        return { state: 'fine' };
      }
      seenForMs += Math.min(sinceLastMs, 2 * everyMs);
      if (progress.call !== undefined) return seenForMs >= deadlineMs ? { state: 'overran', call: progress.call } : { state: 'fine' };
      return { state: seenForMs >= STUCK_MS ? 'stuck' : 'fine' };
    },
  };
}
