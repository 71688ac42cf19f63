/**
 * An agent that has not renewed its lease for this long is dead, and its claims are void. More than twice the interval of the heartbeat, so that one may fail, and so
 * that a live agent has more than one interval left whenever another looks.
 */
export const LEASE_MS = 5_000;

/**
 * Under which id this agent claims, and until when it may act on its claims. The heartbeat renews it; every other part only reads it.
 *
 * The lease begins when the statement that renews it is sent, so it ends here before it ends in Postgres. Two clocks measure it: the monotonic clock keeps
 * running while the process is stopped but not while the machine sleeps; the wall clock covers that.
 */
export class AgentLease {
  readonly #forMs: number;
  #since = { monotonicMs: -Infinity, wallMs: -Infinity };
  /** 0 until the agent is registered. Changes if the agent was taken for dead. */
  agentId = 0;
  /** Agents that are alive. */
  agents = 1;

  constructor(forMs = LEASE_MS) {
    this.#forMs = forMs;
  }

  /** False while another agent may have taken what this one holds. */
  get isHeld(): boolean {
    const { monotonicMs, wallMs } = this.#since;
    return performance.now() - monotonicMs < this.#forMs && Date.now() - wallMs < this.#forMs;
  }

  /** Call it before the statement that renews the lease, and the returned function when that has succeeded. */
  begin(): () => void {
    const since = { monotonicMs: performance.now(), wallMs: Date.now() };
    return () => (this.#since = since);
  }
}
