/** More than two heartbeats, so that one may fail. */
export const LEASE_MS = 5_000;

/**
 * The largest accepted difference between the times measured by the two clocks. A larger one means
 * that the wall clock was set or the machine slept: NTP slews by only about a millisecond between
 * two heartbeats.
 */
const STEP_MS = 500;

/**
 * The id under which this agent claims deliveries, and how long it may act on its claims. The lease
 * starts when the renewing statement is sent, so it ends here before it ends in Postgres. The
 * monotonic clock advances while the process is stopped, and the wall clock while the machine
 * sleeps, so both are checked. Setting the wall clock ends the lease, because the time is unknown
 * until Postgres is queried.
 */
export class AgentLease {
  #since = { monotonicMs: -Infinity, wallMs: -Infinity };
  /** 0 until registered. Changes if the agent was presumed dead. */
  agentId = 0;
  agents = 1;
  /** Agents that read sources, as of the last heartbeat. */
  readers: readonly number[] = [];

  constructor(private readonly forMs = LEASE_MS) {}

  get isHeld(): boolean {
    const { monotonicMs, wallMs } = this.#since;
    const forMs = performance.now() - monotonicMs;
    return forMs < this.forMs && Math.abs(Date.now() - wallMs - forMs) < STEP_MS;
  }

  /** This agent's share of a source's readers, but at least one, which may be a standby. */
  shareOf(workers: number): number {
    const others = this.readers.filter((id) => id !== this.agentId);
    const rank = others.filter((id) => id < this.agentId).length;
    const agents = others.length + 1;
    return Math.max(1, Math.floor(workers / agents) + (rank < workers % agents ? 1 : 0));
  }

  /**
   * Call this before sending the renewing statement, and the returned function once the statement
   * has succeeded.
   */
  begin(): () => void {
    const since = { monotonicMs: performance.now(), wallMs: Date.now() };
    return () => (this.#since = since);
  }
}
