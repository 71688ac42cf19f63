import { readFileSync } from 'node:fs';

/** Share of a processor when throttled: a call gets its deadline within twice the deadline. */
export const SHARE = 2 / 3;

/** A neighbour rarely waits longer than this, and longer turns would save nothing. */
const TURN_MS = 5;

/** Limit of the credit that accumulates while this process is too busy to switch turns. */
const MOST_CREDIT_MS = SHARE * 4 * TURN_MS;

/**
 * Throttles a process with SIGSTOP and SIGCONT: neighbours wait for the end of a turn, not of a
 * loop. Niceness does not help, as kernels weigh groups of processes; control groups need rights
 * that an agent lacks.
 */
export class CpuShare {
  readonly #signal: (name: 'SIGSTOP' | 'SIGCONT') => void;
  #timer: NodeJS.Timeout | undefined;
  #runs = true;
  /** Milliseconds the process may still run. */
  #credit = 0;
  #turnedAt = 0;
  #heldMs = 0;

  /** @param signal must not throw if the process is gone */
  constructor(signal: (name: 'SIGSTOP' | 'SIGCONT') => void) {
    this.#signal = signal;
  }

  /** Starts throttling. The process runs first. Does nothing on Windows, which cannot stop it. */
  begin(now = performance.now()): void {
    if (this.#timer || process.platform === 'win32') return;
    this.#credit = SHARE * TURN_MS;
    this.#turnedAt = now;
    this.#timer = setInterval(() => this.turn(), TURN_MS);
  }

  turn(now = performance.now()): void {
    this.#account(now);
    if (this.#credit > 0 !== this.#runs) this.#let(!this.#runs);
  }

  end(now = performance.now()): void {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#account(now);
    if (!this.#runs) this.#let(true);
  }

  /** Total milliseconds for which the process was stopped. */
  heldMs(now = performance.now()): number {
    if (this.#timer) this.#account(now);
    return this.#heldMs;
  }

  #account(now: number): void {
    const passed = now - this.#turnedAt;
    this.#turnedAt = now;
    if (this.#runs) {
      this.#credit -= (1 - SHARE) * passed;
    } else {
      this.#heldMs += passed;
      this.#credit = Math.min(this.#credit + SHARE * passed, MOST_CREDIT_MS);
    }
  }

  #let(run: boolean): void {
    this.#runs = run;
    this.#signal(run ? 'SIGCONT' : 'SIGSTOP');
  }
}

/** Linux reports processor time in hundredths of a second: times(2), proc(5). */
const MS_PER_TICK = 10;

/** Processor time in milliseconds of a process and its threads; undefined where unavailable. */
export function cpuTimeMs(pid: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Words 12 and 13 (utime, stime) after the program's name; the name may contain anything.
    const words = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(words[11]) + Number(words[12]);
    return Number.isFinite(ticks) ? ticks * MS_PER_TICK : undefined;
  } catch {
    return undefined;
  }
}
