/** How much of a processor a process gets that is to leave room for others: enough that a call has its whole deadline of it within twice the deadline. */
export const SHARE = 2 / 3;

/** Milliseconds between two turns: short enough that a message of a neighbour hardly meets more than one, long enough to cost nothing. */
const TURN_MS = 5;

/** The most that it saves up while we are too busy for turns: enough that it has its share in spite of them, and no loop of its own afterwards. */
const MOST_CREDIT_MS = SHARE * 4 * TURN_MS;

/**
 * Holds a process to a share of a processor, by stopping it and letting it go in turn. Where a neighbour would wait for the end of a loop, it
 * waits for the end of a turn. Niceness does not do it: kernels group processes and weigh the groups. Control groups would, and need rights that an agent has not.
 */
export class CpuShare {
  readonly #signal: (name: 'SIGSTOP' | 'SIGCONT') => void;
  #timer: NodeJS.Timeout | undefined;
  #runs = true;
  /** Milliseconds that it may run until it has had more than its share. */
  #credit = 0;
  #turnedAt = 0;
  #heldMs = 0;

  /** @param signal sends the signal to the process; must not throw when it is gone */
  constructor(signal: (name: 'SIGSTOP' | 'SIGCONT') => void) {
    this.#signal = signal;
  }

  /** From now on it gets its share only, beginning with a turn. Does nothing on Windows, which cannot stop a process. */
  begin(now = performance.now()): void {
    if (this.#timer || process.platform === 'win32') return;
    this.#credit = SHARE * TURN_MS;
    this.#turnedAt = now;
    this.#timer = setInterval(() => this.turn(), TURN_MS);
  }

  /** Sees whose turn it is. Is called by the clock. */
  turn(now = performance.now()): void {
    this.#account(now);
    if (this.#credit > 0 !== this.#runs) this.#let(!this.#runs);
  }

  /** It runs as any other from now on. */
  end(now = performance.now()): void {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#account(now);
    if (!this.#runs) this.#let(true);
  }

  /** Milliseconds that it has been stopped until now, all together. */
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
