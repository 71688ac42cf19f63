import type { Progress } from '../protocol/progress.js';

/** A child that has work but neither runs a function nor makes progress is killed after this time. */
export const STUCK_MS = 10_000;

/** A call with less processor time than this share of its deadline was delayed by the machine: a function cannot wait by itself. */
const KEPT_WAITING_SHARE = 0.5;
/** A call that has used this share of its deadline is likely to overrun. */
const LONG_SHARE = 0.5;
/** The longest that a delayed call may take, in deadlines. */
const KEPT_WAITING_DEADLINES = 1.7;
/**
 * A call with less processor time than this is not to blame. Most calls need a thousandth of it. The share is small because a loop on a
 * machine that is busy with loops gets little time too, and must be blamed.
 */
const STARVED_SHARE = 0.1;

/** `long`: a call is likely to overrun. `overran`: a call ran past its deadline; `starvedMs` is its processor time if that is too little to blame it. */
export type Look =
  { readonly state: 'fine' | 'long' | 'stuck' } | { readonly state: 'overran'; readonly call: number; readonly starvedMs?: number };

/**
 * Measures from outside how long a child has been running the same call. Time counts from look to look, so a call is stopped at most one
 * interval late and never early, and is not blamed while the whole machine stood still or the parent was busy. A call that hardly got the
 * processor gets more time and is then reported as starved. Time for which the CPU share stopped the child (`heldMs`) does not count.
 *
 * @param cpuMs processor time of the child so far; undefined where it is unknown
 * @returns `look`, to be called every `everyMs` milliseconds while the child has work
 */
export function watchDeadline(deadlineMs: number, cpuMs: () => number | undefined = () => undefined) {
  const everyMs = Math.min(200, Math.max(5, Math.ceil(deadlineMs / 10)));
  let seen: Progress = { chunk: 0, call: undefined };
  let seenForMs = 0;
  let seenRunningMs = 0;
  let cpuBefore: number | undefined;
  return {
    everyMs,
    look(progress: Progress, sinceLastMs: number, heldMs = 0): Look {
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
      const usedMs = cpuNow === undefined || cpuBefore === undefined ? Infinity : cpuNow - cpuBefore;
      if (usedMs >= KEPT_WAITING_SHARE * deadlineMs) return { state: 'overran', call: progress.call };
      if (seenForMs < KEPT_WAITING_DEADLINES * deadlineMs) return { state: 'long' };
      const isStarved = usedMs < STARVED_SHARE * deadlineMs;
      return { state: 'overran', call: progress.call, ...(isStarved ? { starvedMs: usedMs } : {}) };
    },
  };
}
