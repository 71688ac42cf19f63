import type { Log } from '@gateway/core/logging';
import type { Endpoint } from '../config/config-cache.js';

/** Postponed deliveries come back within this, however many they are. */
const SPREAD_MAX_MS = 600_000;
/** Interval at which deliveries of a recovered endpoint are made due, some thousands at a time. */
const HASTEN_MS = 5_000;

interface Backlog {
  /** When all postponed deliveries would be back, one after the other. */
  backAtMs: number;
  hastenAtMs: number;
}

export interface BacklogPacingOptions {
  readonly log: Log;
  /** Makes some postponed deliveries due; resolves with how many. */
  readonly hasten: (endpoint: Pick<Endpoint, 'id' | 'projectId'>) => Promise<number>;
}

/**
 * Estimates the backlog of each slow or cut-off endpoint, as the time over which it should come back. The larger it is, the longer the time, so that checking and
 * postponing again costs the same for a million deliveries as for ten thousand. Nothing is counted: each postponement adds time, and time passes.
 */
export class BacklogPacing {
  readonly #options: BacklogPacingOptions;
  readonly #backlogPacing = new Map<string, Backlog>();

  constructor(options: BacklogPacingOptions) {
    this.#options = options;
  }

  /** Milliseconds over which deliveries that are postponed now should come back. */
  spreadMs(endpointId: string, nowMs: number): number {
    const backAtMs = this.#backlogPacing.get(endpointId)?.backAtMs ?? nowMs;
    return Math.min(SPREAD_MAX_MS, Math.max(0, Math.round(backAtMs - nowMs)));
  }

  /** Adds postponed deliveries. @param paceMs milliseconds in which the endpoint should be offered one of them */
  add(endpointId: string, count: number, paceMs: number, nowMs: number): void {
    let backlog = this.#backlogPacing.get(endpointId);
    if (!backlog) this.#backlogPacing.set(endpointId, (backlog = { backAtMs: nowMs, hastenAtMs: nowMs }));
    backlog.backAtMs = Math.min(Math.max(backlog.backAtMs, nowMs) + count * paceMs, nowMs + 2 * SPREAD_MAX_MS);
  }

  /** Whether deliveries of the endpoint were postponed and are not back. */
  has(endpointId: string): boolean {
    return this.#backlogPacing.has(endpointId);
  }

  /** The endpoint has answered well: its long-postponed deliveries are hastened. */
  answeredWell(endpoint: Pick<Endpoint, 'id' | 'projectId'>, nowMs: number): void {
    const backlog = this.#backlogPacing.get(endpoint.id);
    if (!backlog || backlog.hastenAtMs > nowMs) return;
    // The rest is back before it could be hastened.
    if (backlog.backAtMs - nowMs < HASTEN_MS) return;
    this.hasten(endpoint, nowMs);
  }

  /** Makes postponed deliveries due soon, some thousands at a time. */
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

  forget(nowMs: number): void {
    for (const [endpointId, { backAtMs }] of this.#backlogPacing) if (backAtMs < nowMs) this.#backlogPacing.delete(endpointId);
  }
}
