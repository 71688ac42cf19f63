/** An agent that has not renewed its lease for this long is dead. More than two heartbeats, so that one may fail. */
export const LEASE_MS = 5_000;

/** The clocks differ by this much more only when the wall clock was set or the machine slept: NTP slews by a millisecond between two heartbeats. */
const STEP_MS = 500;

/**
 * The id under which this agent claims, and until when it may act on its claims. Only the heartbeat renews it. The lease begins when the renewing statement is
 * sent, so it ends here before it ends in Postgres. Of its two clocks the monotonic one runs while the process is stopped, the wall clock while the machine sleeps.
 * It ends, too, when the wall clock is set: until Postgres is asked again, nobody knows what time it is.
 */
export class AgentLease {
  #since = { monotonicMs: -Infinity, wallMs: -Infinity };
  /** 0 until the agent is registered. Changes if the agent was taken for dead. */
  agentId = 0;
  agents = 1;
  /** Ids of the agents that read sources, as the last heartbeat found them. */
  readers: readonly number[] = [];

  constructor(private readonly forMs = LEASE_MS) {}

  get isHeld(): boolean {
    const { monotonicMs, wallMs } = this.#since;
    const forMs = performance.now() - monotonicMs;
    return forMs < this.forMs && Math.abs(Date.now() - wallMs - forMs) < STEP_MS;
  }

  /** How many of the readers of a source this agent runs: its share of them, but at least one, so that a reader that dies has a standby. */
  shareOf(workers: number): number {
    const others = this.readers.filter((id) => id !== this.agentId);
    const rank = others.filter((id) => id < this.agentId).length;
    const agents = others.length + 1;
    return Math.max(1, Math.floor(workers / agents) + (rank < workers % agents ? 1 : 0));
  }

  /** Call it before the statement that renews the lease, and the returned function when that has succeeded. */
  begin(): () => void {
    const since = { monotonicMs: performance.now(), wallMs: Date.now() };
    return () => (this.#since = since);
  }
}
