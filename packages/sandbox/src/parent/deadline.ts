import type { CallProgress } from '../protocol/progress.js';

/** A child with work is killed after this time without running a function or making progress. */
export const STUCK_MS = 10_000;

/**
 * A call that got less than this share of its deadline as processor time was delayed by the
 * machine, because functions themselves cannot wait.
 */
const KEPT_WAITING_SHARE = 0.5;
/** After this share of its deadline, a call is likely to overrun. */
const LONG_SHARE = 0.5;
/** The maximum duration of a delayed call, as a multiple of its deadline. */
const KEPT_WAITING_DEADLINES = 1.7;
/**
 * A call that got less than this share of its deadline as processor time is not to blame: most
 * calls need a thousandth of it. The share is small, because a loop must be blamed even on a
 * machine busy with loops.
 */
const STARVED_SHARE = 0.1;

/**
 * `long`: the call is likely to overrun. `starvedMs`: the processor time of a call that got too
 * little of it.
 */
export type DeadlineState =
  | { readonly state: 'fine' | 'long' | 'stuck' }
  | { readonly state: 'overran'; readonly call: number; readonly starvedMs?: number };

/**
 * Measures from outside how long a child has been running the same call. Only the time between
 * calls of `look` counts, so a call is stopped at most one interval late, never early, and not
 * because the machine or the parent was suspended. A call with hardly any processor time gets more
 * time, and is then reported as starved. Time for which the CPU share stopped the child (`stoppedMs`)
 * does not count.
 *
 * @param cpuMs the child's processor time, or undefined if unknown
 * @returns `look`, to be called every `everyMs` while the child has work
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
    look(progress: CallProgress, sinceLastMs: number, stoppedMs = 0): DeadlineState {
      if (progress.chunk !== seen.chunk || progress.call !== seen.call) {
        seen = progress;
        seenForMs = seenRunningMs = 0;
        cpuBefore = cpuMs();
        return { state: 'fine' };
      }
      const passedMs = Math.min(sinceLastMs, 2 * everyMs);
      seenForMs += passedMs;
      seenRunningMs += Math.max(0, passedMs - stoppedMs);
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
