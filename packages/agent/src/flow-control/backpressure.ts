import type { Wait } from '@gateway/store/deliveries';
import type { BacklogPacing } from './backlog-pacing.js';
import type { CircuitBreakers, Gate } from './circuit-breakers.js';
import { SLOW_WAITING_MAX, type EndpointQueue } from '../delivery/endpoint-queue.js';
import type { RateLimits } from './rate-limits.js';
import type { Measure } from '../telemetry/measure.js';
import type { Endpoint, ConfigCache } from '../config/config-cache.js';

/** How long the rest of a slow endpoint's deliveries stay away, at least. */
const SLOW_WAIT: Wait = { reason: 'slow', dueInMs: 5_000, spreadMs: 5_000, paceMs: 0 };
/** An endpoint that is slow, or has been cut off, is offered so many of its deliveries a second for each request that it may have under way: twice what a slow one answers. */
const OFFERED_PER_SECOND = 2;
/** Deliveries that wait here for the outcome of a probe. */
export const PROBED_WAITING_MAX = 10;

export interface BackpressureOptions {
  readonly store: ConfigCache;
  readonly circuitBreakers: CircuitBreakers;
  readonly rateLimits: RateLimits;
  readonly backlogPacing: BacklogPacing;
  readonly measure?: Measure | undefined;
  /** What this agent holds, by endpoint. */
  readonly lanes: ReadonlyMap<string, EndpointQueue>;
  /** Requests that an endpoint may have under way. */
  readonly capOf: (endpoint: Endpoint) => number;
}

/** Says which endpoints may not be sent to now, or have enough in memory, and how their deliveries wait in Postgres. */
export class Backpressure {
  readonly #options: BackpressureOptions;

  constructor(options: BackpressureOptions) {
    this.#options = options;
  }

  /** False for an endpoint that is slow and has enough waiting: its deliveries are better off in Postgres. */
  admits(endpointId: string): boolean {
    const lane = this.#options.lanes.get(endpointId);
    return !lane || lane.waiting < SLOW_WAITING_MAX || !lane.isSlow(performance.now());
  }

  /** Endpoints that are slow and have enough. */
  saturated(): Pick<EndpointQueue, 'projectId' | 'endpointId'>[] {
    return [...this.#options.lanes.values()].filter(({ endpointId }) => !this.admits(endpointId));
  }

  /** Endpoints of a project that have enough in memory until it is known how they answer: the rest stays where it is. `onWanted` tells when it may come. */
  unproven(projectId: string): string[] {
    return [...this.#options.lanes.values()].flatMap((lane) => (lane.projectId === projectId && lane.isUnproven ? lane.endpointId : []));
  }

  /** How a delivery has to wait that is made now, without an attempt; undefined: it may come. */
  bornLater(endpoint: Endpoint): Wait | undefined {
    const wait = this.later(endpoint);
    if (wait) this.note(endpoint, wait, 1);
    return wait;
  }

  /**
   * How deliveries of an endpoint have to wait that would come now; undefined: they may come.
   *
   * @param count how many they are, when that is known
   */
  later(endpoint: Endpoint, count = 1): Wait | undefined {
    const { circuitBreakers, rateLimits } = this.#options;
    const waiting = this.#options.lanes.get(endpoint.id)?.waiting ?? 0;
    const gate = circuitBreakers.gate(endpoint.id);
    if (gate?.state === 'open') return this.#spread(endpoint, openWait(gate));
    if (gate && waiting >= PROBED_WAITING_MAX) return this.#spread(endpoint, probedWait(gate));
    if (endpoint.limit && waiting >= rateLimits.room(endpoint.limit)) {
      return { reason: 'rate_limit', spreadMs: 0, ...rateLimits.slots(endpoint, endpoint.limit, count, waiting, performance.now()) };
    }
    return this.admits(endpoint.id) ? undefined : this.#spread(endpoint, SLOW_WAIT);
  }

  /** Endpoints of a project that may not be sent more now, and how their deliveries wait. Whoever puts them off says so to `putOff`. */
  withheld(projectId: string): { readonly endpoint: Endpoint; readonly endpointId: string; readonly wait: Wait }[] {
    const { circuitBreakers, store } = this.#options;
    const asked = new Set(circuitBreakers.notClosed().flatMap((it) => (it.projectId === projectId ? it.endpointId : [])));
    for (const lane of this.#options.lanes.values()) if (lane.projectId === projectId && lane.waiting > 0) asked.add(lane.endpointId);
    return [...asked].flatMap((endpointId) => {
      const endpoint = store.endpoint(projectId, endpointId);
      const wait = endpoint && this.later(endpoint, 0);
      return wait ? { endpoint, endpointId, wait } : [];
    });
  }

  /** Says that due deliveries of an endpoint were put off in Postgres. */
  putOff(endpoint: Endpoint, wait: Wait, count: number): void {
    const { rateLimits } = this.#options;
    if (wait.reason === 'rate_limit' && endpoint.limit) rateLimits.slots(endpoint, endpoint.limit, count, 0, performance.now());
    this.note(endpoint, wait, count);
  }

  /** Takes note of deliveries that were put off. */
  note(endpoint: Endpoint, { reason }: Wait, count: number): void {
    const { backlogPacing, measure, capOf } = this.#options;
    measure?.putOff(endpoint, reason, count);
    if (reason !== 'rate_limit') backlogPacing.add(endpoint.id, count, 1_000 / OFFERED_PER_SECOND / capOf(endpoint), performance.now());
  }

  /** Over as long as what was put off before takes to come back. */
  #spread({ id }: Endpoint, wait: Wait): Wait {
    return { ...wait, spreadMs: Math.max(wait.spreadMs, this.#options.backlogPacing.spreadMs(id, performance.now())) };
  }
}

/** How deliveries wait while nothing is sent: for as long as that, and then not all at once. */
function openWait({ inMs, openMs }: Gate & { state: 'open' }): Wait {
  return { reason: 'breaker', dueInMs: Math.ceil(inMs), spreadMs: Math.round(openMs / 2), paceMs: 0 };
}

/** How deliveries wait for the outcome of a probe. */
function probedWait(gate: Gate): Wait {
  return { reason: 'breaker', dueInMs: gate.state === 'half_open' ? Math.ceil(gate.inMs) : 1_000, spreadMs: 1_000, paceMs: 0 };
}
