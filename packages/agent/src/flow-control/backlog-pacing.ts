// Postponing by a constant delay rewrites a large backlog thousands of times per second, and
// leaves some of it always due, for every claim to skip. Here the delay grows with the number
// postponed, so a backlog of any size settles at one pace. An index by endpoint would cost a write
// per attempt.
import type { Log } from '@gateway/core/logging';
import type { Endpoint } from '@gateway/ingest/routing/project';

const SPREAD_MAX_MS = 600_000;
/** Between batches of postponed deliveries that are made due early for a recovered endpoint. */
const EXPEDITE_MS = 5_000;

interface Backlog {
  /** Monotonic: when the last delivery would be due if deliveries became due one by one. */
  backAtMs: number;
  expediteAtMs: number;
}

interface BacklogPacingOptions {
  readonly log: Log;
  readonly expedite: (endpoint: Pick<Endpoint, 'id' | 'projectId'>) => Promise<number>;
}

/** The time over which to spread an endpoint's backlog, at constant cost. */
export class BacklogPacing {
  readonly #backlogPacing = new Map<string, Backlog>();

  constructor(private readonly options: BacklogPacingOptions) {}

  spreadMs(endpointId: string, nowMs: number): number {
    const backAtMs = this.#backlogPacing.get(endpointId)?.backAtMs ?? nowMs;
    return Math.min(SPREAD_MAX_MS, Math.max(0, Math.round(backAtMs - nowMs)));
  }

  /** @param paceMs the interval between deliveries offered to the endpoint */
  addPostponed(endpointId: string, count: number, paceMs: number, nowMs: number): void {
    let backlog = this.#backlogPacing.get(endpointId);
    if (!backlog)
      this.#backlogPacing.set(endpointId, (backlog = { backAtMs: nowMs, expediteAtMs: nowMs }));
    backlog.backAtMs = Math.min(
      Math.max(backlog.backAtMs, nowMs) + count * paceMs,
      nowMs + 2 * SPREAD_MAX_MS,
    );
  }

  /** Expedites postponed deliveries after a good response, unless they are due soon. */
  answeredWell(endpoint: Pick<Endpoint, 'id' | 'projectId'>, nowMs: number): void {
    const backlog = this.#backlogPacing.get(endpoint.id);
    if (!backlog || backlog.expediteAtMs > nowMs) return;
    // The remaining deliveries are due before another batch would be.
    if (backlog.backAtMs - nowMs < EXPEDITE_MS) return;
    this.expedite(endpoint, nowMs);
  }

  expedite(endpoint: Pick<Endpoint, 'id' | 'projectId'>, nowMs: number): void {
    const backlog = this.#backlogPacing.get(endpoint.id);
    if (backlog) backlog.expediteAtMs = nowMs + EXPEDITE_MS;
    this.options.expedite(endpoint).then(
      (count) => {
        if (count === 0) this.#backlogPacing.delete(endpoint.id);
      },
      (error: unknown) =>
        this.options.log.warn(
          { error, endpoint_id: endpoint.id },
          'Could not expedite deliveries of a recovered endpoint; they stay scheduled.',
        ),
    );
  }

  forget(nowMs: number): void {
    for (const [endpointId, { backAtMs }] of this.#backlogPacing)
      if (backAtMs < nowMs) this.#backlogPacing.delete(endpointId);
  }
}
