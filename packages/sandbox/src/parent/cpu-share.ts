import { readFileSync } from 'node:fs';

/**
 * A throttled process gets this share. Within twice its deadline, a call still gets as much processor time as
 * its deadline.
 */
export const SHARE = 2 / 3;

/** Other processes rarely wait longer; longer turns would save nothing. */
const TURN_MS = 5;

/** Credit accumulates while this process is too busy to switch turns. */
const MOST_CREDIT_MS = SHARE * 4 * TURN_MS;

/**
 * Uses SIGSTOP and SIGCONT, so that other processes wait only for the end of a turn, not of a loop.
 * Niceness does not help, because kernels weigh groups of processes; control groups need rights
 * that an agent lacks.
 */
export class CpuShare {
  readonly #signal: (name: 'SIGSTOP' | 'SIGCONT') => void;
  #timer: NodeJS.Timeout | undefined;
  #runs = true;
  /**
   * Grows while the process is stopped, and shrinks while it runs. The process runs while this is
   * positive.
   */
  #credit = 0;
  #turnedAt = 0;
  #stoppedMs = 0;

  /**
   * Inactive until `begin` is called.
   *
   * @param signal must not throw if the process is gone
   */
  constructor(signal: (name: 'SIGSTOP' | 'SIGCONT') => void) {
    this.#signal = signal;
  }

  /** The process runs in the first turn. Does nothing on Windows, which cannot stop a process. */
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

  /** The total time for which the process was stopped. */
  stoppedMs(now = performance.now()): number {
    if (this.#timer) this.#account(now);
    return this.#stoppedMs;
  }

  #account(now: number): void {
    const passed = now - this.#turnedAt;
    this.#turnedAt = now;
    if (this.#runs) {
      this.#credit -= (1 - SHARE) * passed;
    } else {
      this.#stoppedMs += passed;
      this.#credit = Math.min(this.#credit + SHARE * passed, MOST_CREDIT_MS);
    }
  }

  #let(run: boolean): void {
    this.#runs = run;
    this.#signal(run ? 'SIGCONT' : 'SIGSTOP');
  }
}

/** Linux counts processor time in 1/100 s: times(2), proc(5). */
const MS_PER_TICK = 10;

/** Includes threads. Undefined if unavailable. */
export function cpuTimeMs(pid: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // utime and stime are words 12 and 13 after the program's name. The name may contain anything,
    // and ends at the last closing parenthesis.
    const words = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(words[11]) + Number(words[12]);
    return Number.isFinite(ticks) ? ticks * MS_PER_TICK : undefined;
  } catch {
    return undefined;
  }
}
