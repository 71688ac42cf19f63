import type { Config } from '@gateway/core/config';
import type { SandboxLimits, TransformResult } from '@gateway/sandbox';

/** When a function has overrun so often that it is to be stopped. */
export interface OverrunRule {
  /** Overruns within the window; 0: never. */
  readonly max: number;
  readonly windowMs: number;
}

/** At least this share of the calls in the window must have overrun: a source is not stopped for the few messages that its function cannot take. */
const SHARE = 0.1;

/**
 * Whether a call has ended its process. What a function throws is cheap and does not count, nor does a call that the machine was too busy to run.
 */
export function isOverrun(result: TransformResult): boolean {
  return result.kind === 'refused' && ['timeout', 'memory', 'crashed'].includes(result.code) && !result.starved;
}

interface Window {
  readonly sinceMs: number;
  calls: number;
  overruns: number;
  /** There was a moment in which the function had nothing to do. */
  hadBreak: boolean;
}

/**
 * Counts overruns by function. A window begins with an overrun and counts the calls that follow it, so a function that never overruns costs one
 * look into a map. It goes on beyond its time as long as the function is at work without a break and overruns as often as the rule has it: the
 * sandbox lets those that overrun wait for each other, and however many they are, each is to be stopped.
 */
export class Overruns {
  readonly #rule: OverrunRule;
  readonly #windows = new Map<string, Window>();

  constructor(rule: OverrunRule) {
    this.#rule = rule;
  }

  /**
   * Counts a call that has a result.
   *
   * @param nowMs by the monotonic clock
   * @returns what has happened, as part of a sentence, when the function is to be stopped; the count begins anew then
   */
  count(key: string, result: TransformResult, nowMs = performance.now()): string | undefined {
    const overran = isOverrun(result);
    let window = this.#windows.get(key);
    if (window && nowMs - window.sinceMs > this.#rule.windowMs && (window.hadBreak || isRare(window))) {
      this.#windows.delete(key);
      window = undefined;
    }
    if (!window) {
      if (!overran || this.#rule.max === 0) return undefined;
      this.#windows.set(key, (window = { sinceMs: nowMs, calls: 0, overruns: 0, hadBreak: false }));
    }
    window.calls++;
    if (!overran) return undefined;
    window.overruns++;
    if (window.overruns < this.#rule.max || isRare(window)) return undefined;
    this.#windows.delete(key);
    const seconds = Math.max(1, Math.ceil((nowMs - window.sinceMs) / 1000));
    return `${window.overruns} of ${window.calls} calls of its transform function overran within ${seconds} s`;
  }

  /** The function has nothing to do at this moment. */
  idle(key: string): void {
    const window = this.#windows.get(key);
    if (window) window.hadBreak = true;
  }

  /** Forgets a function. */
  forget(key: string): void {
    this.#windows.delete(key);
  }
}

function isRare({ calls, overruns }: Window): boolean {
  return overruns < SHARE * calls;
}

/** The rule as the settings have it. A window holds at least twice the time that so many overruns take. */
export function overrunRule({ transform }: Pick<Config, 'transform'>): OverrunRule {
  const { deadline_ms: deadlineMs, pause_overruns: max, pause_window_seconds: windowSeconds } = transform;
  return { max, windowMs: Math.max(windowSeconds * 1000, 2 * max * deadlineMs) };
}

/** The limits of transform functions as the settings have them. */
export function sandboxLimits({ transform }: Pick<Config, 'transform'>): SandboxLimits {
  return {
    deadlineMs: transform.deadline_ms,
    memoryMb: transform.memory_mb,
    maxOutputBytes: transform.max_output_bytes,
    processes: transform.processes,
  };
}
