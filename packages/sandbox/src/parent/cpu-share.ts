import { readFileSync } from 'node:fs';

/** Share of a processor that a throttled process gets: a call has its whole deadline of it within twice the deadline. */
export const SHARE = 2 / 3;

/** Short enough that a neighbour's message rarely waits for more than one turn, long enough to cost nothing. */
const TURN_MS = 5;

/** Bound on what a process saves up while this one is too busy to give turns. */
const MOST_CREDIT_MS = SHARE * 4 * TURN_MS;

/**
 * Holds a process to a share of a processor by stopping and continuing it in turn, so that a neighbour waits for the end of a turn and not of
 * a loop. Niceness does not help, because kernels weigh groups of processes; control groups need rights that an agent does not have.
 */
export class CpuShare {
  readonly #signal: (name: 'SIGSTOP' | 'SIGCONT') => void;
  #timer: NodeJS.Timeout | undefined;
  #runs = true;
  /** Milliseconds that it may still run within its share. */
  #credit = 0;
  #turnedAt = 0;
  #heldMs = 0;

  /** @param signal sends the signal to the process; must not throw if it is gone */
  constructor(signal: (name: 'SIGSTOP' | 'SIGCONT') => void) {
    this.#signal = signal;
  }

  /** Starts throttling, beginning with a turn. Does nothing on Windows, which cannot stop a process. */
  begin(now = performance.now()): void {
    if (this.#timer || process.platform === 'win32') return;
    this.#credit = SHARE * TURN_MS;
    this.#turnedAt = now;
    this.#timer = setInterval(() => this.turn(), TURN_MS);
  }

  /** Stops or continues the process; called by the timer. */
  turn(now = performance.now()): void {
    this.#account(now);
    if (this.#credit > 0 !== this.#runs) this.#let(!this.#runs);
  }

  /** Ends throttling. */
  end(now = performance.now()): void {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#account(now);
    if (!this.#runs) this.#let(true);
  }

  /** Total milliseconds that the process has been stopped. */
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

/** Milliseconds of processor time of a process and all its threads; undefined where the system does not report it. */
export function cpuTimeMs(pid: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // utime and stime are the 12th and 13th word after the program's name, which is in brackets and may hold anything.
    const words = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(words[11]) + Number(words[12]);
    return Number.isFinite(ticks) ? ticks * MS_PER_TICK : undefined;
  } catch {
    return undefined;
  }
}
