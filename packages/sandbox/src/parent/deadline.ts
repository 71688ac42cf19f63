import type { CallProgress } from '../protocol/progress.js';

/** A child with work that neither runs a function nor makes progress is killed after this time. */
export const STUCK_MS = 10_000;

/** A call with a smaller share of its deadline in CPU time was delayed: functions cannot wait. */
const KEPT_WAITING_SHARE = 0.5;
/** A call that has used this share of its deadline is likely to overrun. */
const LONG_SHARE = 0.5;
/** Limit for a delayed call, in deadlines. */
const KEPT_WAITING_DEADLINES = 1.7;
/**
 * A call with less processor time is not to blame; most need a thousandth of it. It is small
 * because a loop must be blamed, even on a machine busy with loops.
 */
const STARVED_SHARE = 0.1;

/** `long`: likely to overrun. `starvedMs`: processor time of a call that had too little of it. */
export type DeadlineState =
  | { readonly state: 'fine' | 'long' | 'stuck' }
  | { readonly state: 'overran'; readonly call: number; readonly starvedMs?: number };

/**
 * Measures from outside how long a child has run the same call. Time counts between looks: a call
 * is stopped at most one interval late and never early, and is not blamed while the machine or the
 * parent stood still. A call with hardly any processor time gets more and is then reported as
 * starved. Time stopped by the CPU share (`heldMs`) does not count.
 *
 * @param cpuMs processor time of the child; undefined where unknown
 * @returns `look`, to be called every `everyMs` milliseconds while the child has work
 */
export function watchDeadline(
  deadlineMs: number,
  cpuMs: () => number | undefined = () => undefined,
) {
  const everyMs = Math.min(200, Math.max(5, Math.ceil(deadlineMs / 10)));
  let seen: CallProgress = { chunk: 0, call: undefined };
  let seenForMs = 0;
  let seenRunningMs = 0;
  let cpuBefore: number | undefined;
  return {
    everyMs,
    look(progress: CallProgress, sinceLastMs: number, heldMs = 0): DeadlineState {
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
      const cpuNow = cpuMs();
      const usedMs =
        cpuNow === undefined || cpuBefore === undefined ? Infinity : cpuNow - cpuBefore;
      if (usedMs >= KEPT_WAITING_SHARE * deadlineMs)
        return { state: 'overran', call: progress.call };
      if (seenForMs < KEPT_WAITING_DEADLINES * deadlineMs) return { state: 'long' };
      const isStarved = usedMs < STARVED_SHARE * deadlineMs;
      return { state: 'overran', call: progress.call, ...(isStarved ? { starvedMs: usedMs } : {}) };
    },
  };
}
