/**
 * How long an agent may act on what it holds, by its own clocks. It begins when the statement that renews it is sent, so it ends before Postgres says that it
 * has ended. Two clocks: the monotonic one goes on while the process is stopped, and stands still with the machine; that of the wall tells of that too.
 */
export class Lease {
  readonly #forMs: number;
  #since = { monotonicMs: -Infinity, wallMs: -Infinity };

  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  get holds(): boolean {
    const { monotonicMs, wallMs } = this.#since;
    return performance.now() - monotonicMs < this.#forMs && Date.now() - wallMs < this.#forMs;
  }

  /** Call it before the statement that renews the lease, and what it returns when that has succeeded. */
  begin(): () => void {
    const since = { monotonicMs: performance.now(), wallMs: Date.now() };
    return () => (this.#since = since);
  }
}
