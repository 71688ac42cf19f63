import { SLOW_WAITING_MAX } from '../flow-control/backpressure.js';
import type { HeldDelivery, QueueState } from '../model/delivery.js';

/** An endpoint is slow while its oldest request is older than this; it then keeps few deliveries in memory. */
export const SLOW_AFTER_MS = 1_000;

/** A request that is being sent. */
export interface Sending {
  readonly startedAtMs: number;
}

/** The deliveries of one endpoint that this agent holds: waiting in order, and being sent. */
export class EndpointQueue implements QueueState {
  readonly endpointId: string;
  readonly projectId: string;
  /** Oldest first: a Set keeps the order of insertion. */
  readonly #sending = new Set<Sending>();
  #waiting: (HeldDelivery | undefined)[] = [];
  #head = 0;
  /** It is among the queues that get a turn. */
  isOffered = false;
  /** The last request was answered promptly. */
  isPrompt = false;
  /** The one request that a circuit breaker lets through: whether this agent may send it. */
  probe: 'none' | 'asked' | 'granted' = 'none';

  constructor(endpointId: string, projectId: string) {
    this.endpointId = endpointId;
    this.projectId = projectId;
  }

  get waiting(): number {
    return this.#waiting.length - this.#head;
  }

  get sending(): number {
    return this.#sending.size;
  }

  /** True if the endpoint has not answered promptly the last time, and has enough waiting until it does. */
  get isUnproven(): boolean {
    return !this.isPrompt && this.waiting >= SLOW_WAITING_MAX;
  }

  isSlow(nowMs: number): boolean {
    const oldest = this.#sending.values().next();
    return !oldest.done && nowMs - oldest.value.startedAtMs > SLOW_AFTER_MS;
  }

  /**
   * Whether it may use one more of the consumers. The busier the agent, the fewer one endpoint gets, so that a few endpoints that hang do not take them all. An
   * endpoint that is slow or unknown gets consumers from one half of them only; its first request from three quarters.
   */
  hasShare(consumers: number, free: number): boolean {
    const { sending } = this;
    if (this.isPrompt) return sending < 2 || sending < 2 * (free - consumers / 4);
    return sending === 0 ? free > Math.floor(consumers / 4) : sending < (free - consumers / 2) / 2;
  }

  push(delivery: HeldDelivery): void {
    this.#waiting.push(delivery);
  }

  /** Takes the delivery that has waited longest. */
  shift(): HeldDelivery | undefined {
    const delivery = this.#waiting[this.#head];
    if (!delivery) return undefined;
    this.#waiting[this.#head++] = undefined;
    if (this.#head > 1024 || this.#head === this.#waiting.length) {
      this.#waiting.splice(0, this.#head);
      this.#head = 0;
    }
    return delivery;
  }

  /** Takes all but the `keep` deliveries that have waited longest. */
  takeAllBut(keep: number): HeldDelivery[] {
    return this.#waiting.splice(this.#head + keep) as HeldDelivery[];
  }

  /** Notes that a request is being sent, until `end`. */
  begin(nowMs: number): Sending {
    const request = { startedAtMs: nowMs };
    this.#sending.add(request);
    return request;
  }

  end(request: Sending): void {
    this.#sending.delete(request);
  }
}
