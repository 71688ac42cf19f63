/** Lease of an agent. It exceeds two heartbeats, so one can fail. */
export const LEASE_MS = 5_000;

/**
 * Larger steps mean that the wall clock was set or the machine slept: NTP slews by about a
 * millisecond between two heartbeats.
 */
const STEP_MS = 500;

/**
 * The id under which this agent claims, and how long it may act on its claims. The lease starts
 * when the renewing statement is sent, so it ends here before it ends in Postgres. The monotonic
 * clock advances while the process is stopped, the wall clock while the machine sleeps. Setting the
 * wall clock ends the lease: the time is unknown until Postgres is queried.
 */
export class AgentLease {
  #since = { monotonicMs: -Infinity, wallMs: -Infinity };
  /** 0 until the agent is registered. Changes when the agent was taken for dead. */
  agentId = 0;
  agents = 1;
  /** Ids of the agents that read sources, as of the last heartbeat. */
  readers: readonly number[] = [];

  constructor(private readonly forMs = LEASE_MS) {}

  get isHeld(): boolean {
    const { monotonicMs, wallMs } = this.#since;
    const forMs = performance.now() - monotonicMs;
    return forMs < this.forMs && Math.abs(Date.now() - wallMs - forMs) < STEP_MS;
  }

  /** Returns how many of a source's readers run here: a share, but at least one as a standby. */
  shareOf(workers: number): number {
    const others = this.readers.filter((id) => id !== this.agentId);
    const rank = others.filter((id) => id < this.agentId).length;
    const agents = others.length + 1;
    return Math.max(1, Math.floor(workers / agents) + (rank < workers % agents ? 1 : 0));
  }

  /** Call this before the statement that renews the lease, and the returned function on success. */
  begin(): () => void {
    const since = { monotonicMs: performance.now(), wallMs: Date.now() };
    return () => (this.#since = since);
  }
}
