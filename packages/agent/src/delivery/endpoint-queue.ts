import type { HeldDelivery } from '../model/delivery.js';

/** An endpoint whose oldest request is older than this is slow, and keeps few deliveries in memory. */
export const SLOW_AFTER_MS = 1_000;
/** Deliveries that a slow endpoint keeps waiting in memory. */
export const SLOW_WAITING_MAX = 100;

/** The deliveries of one endpoint that this agent holds: waiting in order, and under way. */
export class EndpointQueue {
  readonly endpointId: string;
  readonly projectId: string;
  /** When each request under way began, oldest first: a Set keeps the order of insertion. */
  readonly #underWay = new Set<{ readonly startedAtMs: number }>();
  #waiting: (HeldDelivery | undefined)[] = [];
  #head = 0;
  /** True while it stands in the queue of lanes that may send. */
  queued = false;
  /** Whether the endpoint was last heard to answer in good time. */
  isPrompt = false;
  /** Whether this agent may send the one request that a circuit breaker lets through. */
  probe: 'none' | 'asked' | 'granted' = 'none';

  constructor(endpointId: string, projectId: string) {
    this.endpointId = endpointId;
    this.projectId = projectId;
  }

  get waiting(): number {
    return this.#waiting.length - this.#head;
  }

  get underWay(): number {
    return this.#underWay.size;
  }

  /** True for an endpoint that has not answered promptly the last time, and has enough waiting until it does. */
  get isUnproven(): boolean {
    return !this.isPrompt && this.waiting >= SLOW_WAITING_MAX;
  }

  /** True when the endpoint takes longer than others should wait for. */
  isSlow(nowMs: number): boolean {
    const oldest = this.#underWay.values().next();
    return !oldest.done && nowMs - oldest.value.startedAtMs > SLOW_AFTER_MS;
  }

  /**
   * Whether it may have one more of the consumers, of which so many are free. The busier the agent, the less one endpoint gets of them: a few that hang, all at once,
   * do not take them all. An endpoint that answers slowly, or of which nothing is known yet, gets from one half of them alone; its first request from three quarters.
   */
  hasShare(consumers: number, free: number): boolean {
    const { underWay } = this;
    if (this.isPrompt) return underWay < 2 || underWay < 2 * (free - consumers / 4);
    return underWay === 0 ? free > Math.floor(consumers / 4) : underWay < (free - consumers / 2) / 2;
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

  /** Notes a request; call the returned function when it has ended. */
  begin(nowMs: number): () => void {
    const request = { startedAtMs: nowMs };
    this.#underWay.add(request);
    return () => this.#underWay.delete(request);
  }
}
