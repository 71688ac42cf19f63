import type { AttemptRecord, Wait } from '@gateway/store/deliveries';
import type { AgentContext } from '../config/agent-context.js';
import type { Endpoint, Limit } from '@gateway/ingest/routing/project';
import type { EndpointQueues, QueueState } from '../model/delivery.js';
import type { BacklogPacing } from './backlog-pacing.js';
import type { CircuitBreakers, Gate } from './circuit-breakers.js';
import type { RateLimits } from './rate-limits.js';

/** The maximum number of deliveries of a slow endpoint that wait in memory. */
export const SLOW_WAITING_MAX = 100;
/** How long a slow endpoint's further deliveries wait in Postgres. */
const SLOW_WAIT: Wait = { reason: 'slow', dueInMs: 5_000, spreadMs: 5_000, paceMs: 0 };
/**
 * How long deliveries wait if their project has too many DNS lookups running, which have ended by
 * then, or if this agent has run short of something.
 */
export const UNSENT_WAITS: Readonly<Record<'lookup' | 'shortage', Wait>> = {
  lookup: { reason: 'lookup', dueInMs: 5_000, spreadMs: 5_000, paceMs: 0 },
  shortage: { reason: 'shortage', dueInMs: 5_000, spreadMs: 10_000, paceMs: 0 },
};
export const FUNCTION_WAIT: Wait = {
  reason: 'function',
  dueInMs: 5_000,
  spreadMs: 10_000,
  paceMs: 0,
};
/**
 * Deliveries offered to a slow endpoint per second and concurrent request: twice what it can
 * handle.
 */
const OFFERED_PER_SECOND = 2;
const PROBED_WAITING_MAX = 10;

interface BackpressureOptions extends Pick<AgentContext, 'config' | 'configCache' | 'measure'> {
  readonly inFlight: EndpointQueues;
  readonly circuitBreakers: CircuitBreakers;
  readonly rateLimits: RateLimits;
  readonly backlogPacing: BacklogPacing;
}

/** An endpoint that may not receive further deliveries now, and how long they wait in Postgres. */
export interface Withheld {
  readonly endpoint: Endpoint;
  readonly endpointId: string;
  readonly wait: Wait;
}

/** Decides which endpoints may receive requests now, and which deliveries wait in Postgres. */
export class Backpressure {
  constructor(private readonly options: BackpressureOptions) {}

  concurrencyOf(endpoint: Endpoint | undefined): number {
    return endpoint?.concurrency ?? this.options.config.delivery.endpoint_concurrency;
  }

  roomUnder(limit: Limit): number {
    return this.options.rateLimits.room(limit);
  }

  /** Returns `send` if a request may be sent now, or how many deliveries may stay in memory. */
  permitRequest(queue: QueueState, endpoint: Endpoint): 'send' | number {
    const { circuitBreakers, rateLimits } = this.options;
    const gate = circuitBreakers.gateOf(endpoint.id);
    if (gate && queue.probe !== 'granted') {
      if (gate.state === 'open') return 0;
      if (gate.state === 'half_open') return PROBED_WAITING_MAX;
      if (queue.probe === 'none') void this.#askToProbe(queue, endpoint);
      return Infinity;
    }
    if (
      !endpoint.limit ||
      rateLimits.take(endpoint, endpoint.limit, queue.waiting, performance.now())
    )
      return 'send';
    return rateLimits.room(endpoint.limit);
  }

  async #askToProbe(queue: QueueState, endpoint: Endpoint): Promise<void> {
    queue.probe = 'asked';
    const isGranted = await this.options.circuitBreakers.requestProbe(endpoint);
    queue.probe = isGranted ? 'granted' : 'none';
    if (isGranted) this.options.inFlight.wake(endpoint.id);
  }

  recordAttempt(
    queue: QueueState,
    endpoint: Endpoint,
    attempt: AttemptRecord,
    { isPrompt, isProbe }: { readonly isPrompt: boolean; readonly isProbe: boolean },
  ): void {
    const { circuitBreakers, backlogPacing } = this.options;
    const { isUp, isOperational } = attempt;
    const error = attempt.detail ?? '';
    if (isProbe) {
      // Closing the circuit breaker expedites the backlog as well.
      void circuitBreakers.recordProbe(endpoint, isUp === true, error);
      return;
    }
    if (isUp && isPrompt && backlogPacing.has(endpoint.id)) {
      const nowMs = performance.now();
      if (!queue.isSlow(nowMs)) backlogPacing.answeredWell(endpoint, nowMs);
    }
    if (isUp !== null) circuitBreakers.countRequest(endpoint, isUp, error, isOperational);
  }

  /**
   * Whether more of the endpoint's deliveries may be kept in memory. False if it is slow and has
   * either the maximum number of deliveries waiting or no capacity left.
   */
  admitsDeliveries(endpointId: string): boolean {
    const { inFlight } = this.options;
    const queue = inFlight.queues.get(endpointId);
    return (
      !queue ||
      (queue.waiting < SLOW_WAITING_MAX && inFlight.hasRoomFor(queue)) ||
      !queue.isSlow(performance.now())
    );
  }

  saturatedQueues(): Pick<QueueState, 'projectId' | 'endpointId'>[] {
    return [...this.options.inFlight.queues.values()].filter(
      ({ endpointId }) => !this.admitsDeliveries(endpointId),
    );
  }

  /**
   * Returns the endpoints that are not known to respond promptly and have the maximum number of
   * deliveries in memory.
   */
  unprovenEndpoints(projectId: string): string[] {
    return [...this.options.inFlight.queues.values()].flatMap((queue) =>
      queue.projectId === projectId && queue.isUnproven ? queue.endpointId : [],
    );
  }

  postponeNew(endpoint: Endpoint): Wait | undefined {
    const wait = this.waitOf(endpoint);
    if (wait) this.countPostponed(endpoint, wait, 1);
    return wait;
  }

  /**
   * Returns how long further deliveries of the endpoint wait, or undefined if they need not wait.
   *
   * @param count the number of deliveries, or 0 if unknown
   */
  waitOf(endpoint: Endpoint, count = 1): Wait | undefined {
    const { inFlight, circuitBreakers, rateLimits } = this.options;
    const waiting = inFlight.queues.get(endpoint.id)?.waiting ?? 0;
    const gate = circuitBreakers.gateOf(endpoint.id);
    if (gate?.state === 'open') return this.#spread(endpoint, openWait(gate));
    if (gate && waiting >= PROBED_WAITING_MAX) {
      // Further deliveries wait in Postgres for the outcome of the probe.
      const dueInMs = gate.state === 'half_open' ? Math.ceil(gate.inMs) : 1_000;
      return this.#spread(endpoint, { reason: 'breaker', dueInMs, spreadMs: 1_000, paceMs: 0 });
    }
    if (endpoint.limit && waiting >= rateLimits.room(endpoint.limit)) {
      return {
        reason: 'rate_limit',
        spreadMs: 0,
        ...rateLimits.slots(endpoint, endpoint.limit, count, waiting, performance.now()),
      };
    }
    return this.admitsDeliveries(endpoint.id) ? undefined : this.#spread(endpoint, SLOW_WAIT);
  }

  /**
   * Returns the endpoints that may not receive further deliveries now. Report the number postponed
   * for each to `countWithheld`.
   */
  withheldEndpoints(projectId: string): Withheld[] {
    const { inFlight, circuitBreakers, configCache } = this.options;
    const ids = new Set(
      circuitBreakers
        .notClosed()
        .flatMap((it) => (it.projectId === projectId ? it.endpointId : [])),
    );
    for (const queue of inFlight.queues.values())
      if (queue.projectId === projectId) ids.add(queue.endpointId);
    return [...ids].flatMap((endpointId) => {
      const endpoint = configCache.endpoint(projectId, endpointId);
      const wait = endpoint && this.waitOf(endpoint, 0);
      return wait ? { endpoint, endpointId, wait } : [];
    });
  }

  countWithheld({ endpoint, wait }: Withheld, count: number): void {
    if (wait.reason === 'rate_limit' && endpoint.limit)
      this.options.rateLimits.slots(endpoint, endpoint.limit, count, 0, performance.now());
    this.countPostponed(endpoint, wait, count);
  }

  countPostponed(endpoint: Endpoint, { reason }: Wait, count: number): void {
    const { backlogPacing, measure } = this.options;
    measure?.postponed(endpoint, reason, count);
    if (reason !== 'rate_limit')
      backlogPacing.addPostponed(
        endpoint.id,
        count,
        1_000 / OFFERED_PER_SECOND / this.concurrencyOf(endpoint),
        performance.now(),
      );
  }

  forgetIdleEndpoints(nowMs: number): void {
    this.options.rateLimits.forget(nowMs);
    this.options.backlogPacing.forget(nowMs);
  }

  /** Spreads deliveries over at least the time in which those postponed earlier become due. */
  #spread({ id }: Endpoint, wait: Wait): Wait {
    return {
      ...wait,
      spreadMs: Math.max(wait.spreadMs, this.options.backlogPacing.spreadMs(id, performance.now())),
    };
  }
}

/** Returns the wait for an open breaker: until it may close, plus half its open time as spread. */
function openWait({ inMs, openMs }: Gate & { state: 'open' }): Wait {
  return {
    reason: 'breaker',
    dueInMs: Math.ceil(inMs),
    spreadMs: Math.round(openMs / 2),
    paceMs: 0,
  };
}
