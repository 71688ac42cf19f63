import type { Progress } from '../protocol/progress.js';

/** A child that neither runs a function nor gets on, although it has work, is given up after this time. */
export const STUCK_MS = 10_000;

/** A call that had less than this share of its deadline as processor time was kept waiting by the machine, since a function cannot wait by itself. */
const KEPT_WAITING_SHARE = 0.5;
/** A call that had this share of its deadline is long, and may well overrun. */
const LONG_SHARE = 0.5;
/** How much of its deadline such a call gets at most. */
const KEPT_WAITING_DEADLINES = 1.7;
/**
 * One that had less than this is not to blame at the end: most calls need a thousandth of it. It is no more, because a loop on a machine that
 * is busy with loops gets little too, and has to be blamed there above all.
 */
const STARVED_SHARE = 0.1;

/**
 * What a look finds. `long` is a call that is likely to overrun; `overran` names the call that has run past the deadline, and its processor time when
 * it was too little to blame it.
 */
export type Look =
  { readonly state: 'fine' | 'long' | 'stuck' } | { readonly state: 'overran'; readonly call: number; readonly starvedMs?: number };

export interface DeadlineWatch {
  /** Milliseconds between two calls of `look`. */
  readonly everyMs: number;
  /**
   * Looks at the child; to be called every `everyMs` while it has work.
   *
   * @param heldMs of `sinceLastMs`, how long we kept it from running
   */
  look(progress: Progress, sinceLastMs: number, heldMs?: number): Look;
}

/**
 * Measures from outside how long a child has been at the same call. The time is that of the looks: a call is over its deadline when it was
 * seen running for that long. So it is stopped at most one interval late and never early, and when the whole machine stood still, or the
 * parent was busy, the call is not blamed for it. Nor when the machine has so much to do that the child hardly came to run: then it has
 * some time more, and is told from those that used theirs. What we held it for ourselves does not count either.
 *
 * @param cpuMs processor time of the child so far; undefined where nobody can tell
 */
export function watchDeadline(deadlineMs: number, cpuMs: () => number | undefined = () => undefined): DeadlineWatch {
  const everyMs = Math.min(200, Math.max(5, Math.ceil(deadlineMs / 10)));
  let seen: Progress = { chunk: 0, call: undefined };
  let seenForMs = 0;
  let seenRunningMs = 0;
  let cpuBefore: number | undefined;
  const used = (): number | undefined => {
    const now = cpuMs();
    return now === undefined || cpuBefore === undefined ? undefined : now - cpuBefore;
  };
  return {
    everyMs,
    look(progress, sinceLastMs, heldMs = 0) {
      if (progress.chunk !== seen.chunk || progress.call !== seen.call) {
        seen = progress;
        seenForMs = seenRunningMs = 0;
        cpuBefore = cpuMs();
        return { state: 'fine' };
      }
      const passedMs = Math.min(sinceLastMs, 2 * everyMs);
      seenForMs += passedMs;
      seenRunningMs += Math.max(0, passedMs - heldMs);
      if (progress.call === undefined) return { state: seenForMs >= STUCK_MS ? 'stuck' : 'fine' };
      if (seenRunningMs < LONG_SHARE * deadlineMs) return { state: 'fine' };
      if (seenRunningMs < deadlineMs) return { state: 'long' };
      const usedMs = used();
      if (usedMs === undefined || usedMs >= KEPT_WAITING_SHARE * deadlineMs) return { state: 'overran', call: progress.call };
      if (seenForMs < KEPT_WAITING_DEADLINES * deadlineMs) return { state: 'long' };
      const isStarved = usedMs < STARVED_SHARE * deadlineMs;
      return { state: 'overran', call: progress.call, ...(isStarved ? { starvedMs: usedMs } : {}) };
    },
  };
}
