import type { Log } from '@gateway/core/logging';
import type { Endpoint } from '@gateway/ingest/routing/project';

/** Postponed deliveries return within this time, however many there are. */
const SPREAD_MAX_MS = 600_000;
/** Interval at which deliveries of a recovered endpoint are made due, some thousands at a time. */
const HASTEN_MS = 5_000;

interface Backlog {
  /** When the last postponed delivery would return if they returned one by one. */
  backAtMs: number;
  hastenAtMs: number;
}

interface BacklogPacingOptions {
  readonly log: Log;
  readonly hasten: (endpoint: Pick<Endpoint, 'id' | 'projectId'>) => Promise<number>;
}

/**
 * Estimates the time over which the backlog of an endpoint should return, at a cost independent of
 * its size.
 */
export class BacklogPacing {
  readonly #backlogPacing = new Map<string, Backlog>();

  constructor(private readonly options: BacklogPacingOptions) {}

  spreadMs(endpointId: string, nowMs: number): number {
    const backAtMs = this.#backlogPacing.get(endpointId)?.backAtMs ?? nowMs;
    return Math.min(SPREAD_MAX_MS, Math.max(0, Math.round(backAtMs - nowMs)));
  }

  /** @param paceMs milliseconds between two deliveries offered to the endpoint */
  addPostponed(endpointId: string, count: number, paceMs: number, nowMs: number): void {
    let backlog = this.#backlogPacing.get(endpointId);
    if (!backlog)
      this.#backlogPacing.set(endpointId, (backlog = { backAtMs: nowMs, hastenAtMs: nowMs }));
    backlog.backAtMs = Math.min(
      Math.max(backlog.backAtMs, nowMs) + count * paceMs,
      nowMs + 2 * SPREAD_MAX_MS,
    );
  }

  has(endpointId: string): boolean {
    return this.#backlogPacing.has(endpointId);
  }

  /** Hastens long-postponed deliveries after a good answer. */
  answeredWell(endpoint: Pick<Endpoint, 'id' | 'projectId'>, nowMs: number): void {
    const backlog = this.#backlogPacing.get(endpoint.id);
    if (!backlog || backlog.hastenAtMs > nowMs) return;
    // The rest returns before it could be hastened.
    if (backlog.backAtMs - nowMs < HASTEN_MS) return;
    this.hasten(endpoint, nowMs);
  }

  /** Makes postponed deliveries due soon, some thousands at a time. */
  hasten(endpoint: Pick<Endpoint, 'id' | 'projectId'>, nowMs: number): void {
    const backlog = this.#backlogPacing.get(endpoint.id);
    if (backlog) backlog.hastenAtMs = nowMs + HASTEN_MS;
    this.options.hasten(endpoint).then(
      (count) => {
        if (count === 0) this.#backlogPacing.delete(endpoint.id);
      },
      (error: unknown) =>
        this.options.log.warn(
          { error, endpoint_id: endpoint.id },
          'Deliveries of an endpoint that answers again could not be hastened; they come when they are due.',
        ),
    );
  }

  forget(nowMs: number): void {
    for (const [endpointId, { backAtMs }] of this.#backlogPacing)
      if (backAtMs < nowMs) this.#backlogPacing.delete(endpointId);
  }
}
