import type { Attempt, InFlightDelivery } from '../model/delivery.js';

/** Deliveries in memory of a slow endpoint, or of one whose breaker is being probed. */
export const SLOW_WAITING_MAX = 100;
/** While a request has been running for longer, few of the endpoint's deliveries stay in memory. */
export const SLOW_AFTER_MS = 1_000;

type Running = Pick<Attempt, 'startedAtMs'>;

export class EndpointQueue {
  /** Oldest first: a `Set` keeps insertion order. */
  readonly #sending = new Set<Running>();
  #waiting: (InFlightDelivery | undefined)[] = [];
  #head = 0;
  isOffered = false;
  isPrompt = false;
  /** This agent has requested, or was granted, the probe of an open circuit breaker. */
  probe: 'none' | 'asked' | 'granted' = 'none';

  constructor(
    readonly endpointId: string,
    readonly projectId: string,
  ) {}

  get waiting(): number {
    return this.#waiting.length - this.#head;
  }

  get sending(): number {
    return this.#sending.size;
  }

  /**
   * The endpoint has the maximum number of deliveries in memory and is not known to respond
   * promptly.
   */
  get isUnproven(): boolean {
    return !this.isPrompt && this.waiting >= SLOW_WAITING_MAX;
  }

  isSlow(nowMs: number): boolean {
    const oldest = this.#sending.values().next();
    return !oldest.done && nowMs - oldest.value.startedAtMs > SLOW_AFTER_MS;
  }

  /**
   * Allows the endpoint another consumer. The fewer consumers are free, the fewer an endpoint
   * gets, so that a few hanging endpoints cannot occupy all of them. A slow or unknown endpoint
   * needs more than a quarter of the consumers free for its first request, and more than half for
   * further requests.
   */
  hasShare(consumers: number, free: number): boolean {
    const { sending } = this;
    if (this.isPrompt) return sending < 2 || sending < 2 * (free - consumers / 4);
    return sending === 0 ? free > Math.floor(consumers / 4) : sending < (free - consumers / 2) / 2;
  }

  push(delivery: InFlightDelivery): void {
    this.#waiting.push(delivery);
  }

  /** Without taking it. */
  at(index: number): InFlightDelivery | undefined {
    return this.#waiting[this.#head + index];
  }

  shift(): InFlightDelivery | undefined {
    const delivery = this.#waiting[this.#head];
    if (!delivery) return undefined;
    this.#waiting[this.#head++] = undefined;
    if (this.#head > 1024 || this.#head === this.#waiting.length) {
      this.#waiting.splice(0, this.#head);
      this.#head = 0;
    }
    return delivery;
  }

  takeAllBut(keep: number): InFlightDelivery[] {
    return this.#waiting.splice(this.#head + keep) as InFlightDelivery[];
  }

  begin(attempt: Running): void {
    this.#sending.add(attempt);
  }

  end(attempt: Running): void {
    this.#sending.delete(attempt);
  }
}

export interface QueuesInFlight {
  readonly queues: ReadonlyMap<string, EndpointQueue>;
  /** Whether only the reserve is left, which is for endpoints that respond promptly. */
  readonly isReserve: boolean;
  hasRoomFor(of: Pick<EndpointQueue, 'projectId' | 'endpointId'>): boolean;
  wake(endpointId: string): void;
}
