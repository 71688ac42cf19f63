import type { Log } from '@gateway/core/logging';
import type { Endpoint } from '../config/config-cache.js';

/** What is put off is tried again within this, however much it is. */
const SPREAD_MAX_MS = 600_000;
/** An endpoint that answers well again has its deliveries hastened so often, some thousands at a time. */
const HASTEN_MS = 5_000;

interface Backlog {
  /** When all would have come back that was put off, one after the other. */
  backAtMs: number;
  hastenAtMs: number;
}

export interface BacklogPacingOptions {
  readonly log: Log;
  /** Makes deliveries due that were put off, some of many, and says how many. */
  readonly hasten: (endpoint: Pick<Endpoint, 'id' | 'projectId'>) => Promise<number>;
}

/**
 * How much of each endpoint waits in Postgres because the endpoint is slow or its breaker is open. The more it is, the longer the time over which it comes back: what
 * comes back is looked at and put off again, and that must cost the same beside ten thousand deliveries as beside a million.
 *
 * Nobody counts them. What is put off adds to the time, and time passes: when everything comes back sooner than the pace says, it is put off more often, and the time grows.
 */
export class BacklogPacing {
  readonly #options: BacklogPacingOptions;
  readonly #backlogPacing = new Map<string, Backlog>();

  constructor(options: BacklogPacingOptions) {
    this.#options = options;
  }

  /** Milliseconds over which what is put off now should come back. */
  spreadMs(endpointId: string, nowMs: number): number {
    const backAtMs = this.#backlogPacing.get(endpointId)?.backAtMs ?? nowMs;
    return Math.min(SPREAD_MAX_MS, Math.max(0, Math.round(backAtMs - nowMs)));
  }

  /** Takes note of deliveries that were put off. @param paceMs milliseconds in which the endpoint should be offered one of them */
  add(endpointId: string, count: number, paceMs: number, nowMs: number): void {
    let backlog = this.#backlogPacing.get(endpointId);
    if (!backlog) this.#backlogPacing.set(endpointId, (backlog = { backAtMs: nowMs, hastenAtMs: nowMs }));
    backlog.backAtMs = Math.min(Math.max(backlog.backAtMs, nowMs) + count * paceMs, nowMs + 2 * SPREAD_MAX_MS);
  }

  /** Whether anything of an endpoint was put off and has not come back. */
  has(endpointId: string): boolean {
    return this.#backlogPacing.has(endpointId);
  }

  /** Says that an endpoint has answered well: what of it was put off for long is hastened. */
  answeredWell(endpoint: Pick<Endpoint, 'id' | 'projectId'>, nowMs: number): void {
    const backlog = this.#backlogPacing.get(endpoint.id);
    if (!backlog || backlog.hastenAtMs > nowMs) return;
    // The rest comes by itself before it could be hastened.
    if (backlog.backAtMs - nowMs < HASTEN_MS) return;
    this.hasten(endpoint, nowMs);
  }

  /** Makes what was put off due soon, some of very much: the endpoint is well. */
  hasten(endpoint: Pick<Endpoint, 'id' | 'projectId'>, nowMs: number): void {
    const backlog = this.#backlogPacing.get(endpoint.id);
    if (backlog) backlog.hastenAtMs = nowMs + HASTEN_MS;
    this.#options.hasten(endpoint).then(
      (count) => {
        if (count === 0) this.#backlogPacing.delete(endpoint.id);
      },
      (error: unknown) =>
        this.#options.log.warn(
          { error, endpoint_id: endpoint.id },
          'Deliveries of an endpoint that answers again could not be hastened; they come when they are due.',
        ),
    );
  }

  /** Forgets endpoints of which everything has come back. */
  forget(nowMs: number): void {
    for (const [endpointId, { backAtMs }] of this.#backlogPacing) if (backAtMs < nowMs) this.#backlogPacing.delete(endpointId);
  }
}
