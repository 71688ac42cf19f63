import type { AttemptRecord } from '@gateway/store/deliveries';
import { SLOW_WAITING_MAX } from '../flow-control/backpressure.js';
import type { HeldDelivery, QueueState } from '../model/delivery.js';
import type { AgentLease } from '../model/lease.js';
import { FairQueue } from '@gateway/core/queue';
import { HeldRoom } from './held-room.js';
import type { DeliveryReleaser } from './release-deliveries.js';

export interface InFlightOptions {
  readonly lease: Pick<AgentLease, 'agentId'>;
  readonly releaser: Pick<DeliveryReleaser, 'release'>;
  readonly maxOutstanding: number;
  readonly maxOutstandingBytes: number;
}

/** Deliveries held by this agent. Event writer, pending router and claimer add them, the scheduler takes them, the attempt writer frees their room. */
export class InFlight {
  readonly queues = new Map<string, EndpointQueue>();
  readonly #room: HeldRoom;
  readonly #prompt = new Set<string>();
  /** Projects take turns, and within them endpoints. */
  readonly #ready = new FairQueue<EndpointQueue>();
  #onReady = (): void => {};
  /** Projects and endpoints that wait for room of their own. */
  readonly #short = new Set<string>();
  #onRoom = (_projectId: string): void => {};
  #onRecorded = (): void => {};
  #roomWaiters: (() => void)[] = [];
  #recordedAtMs = 0;
  #isClosed = false;

  constructor(private readonly options: InFlightOptions) {
    this.#room = new HeldRoom({ bytes: options.maxOutstandingBytes, deliveries: options.maxOutstanding });
  }

  /** How many more deliveries may be held; 0 or less when there is no room, and 0 when the held bodies take all of it or after `close`. */
  get room(): number {
    return this.#isClosed ? 0 : this.#room.left;
  }

  /** True when only endpoints that answer get more. */
  get isReserve(): boolean {
    return this.#room.free(false) <= 0;
  }

  /** How many deliveries are held: being committed, waiting, being sent, or being recorded. */
  get size(): number {
    return this.#room.size;
  }

  /** True until the delivery is recorded or released. */
  has(deliveryId: string): boolean {
    return this.#room.get(deliveryId) !== undefined;
  }

  /** Whether project and endpoint have room in their shares for another delivery, however large it is. */
  hasRoomFor(of: Pick<HeldDelivery, 'projectId' | 'endpointId'>): boolean {
    return this.#room.has(of, false) || (this.#answers(of.endpointId) && this.#room.has(of, true));
  }

  /** What the project may add to the room that all endpoints have, or with `answers` to that of endpoints that answer. */
  roomOf(projectId: string, answers: boolean): { readonly bytes: number; readonly deliveries: number } {
    return this.#room.ofProject(projectId, answers);
  }

  /** Whether the project should hold what it has before it gets more. */
  isBusy(projectId: string): boolean {
    return this.#room.isBusy(projectId);
  }

  /** Sets the one listener, called when attempts are recorded. */
  onRecorded(listener: () => void): void {
    this.#onRecorded = listener;
  }

  /** Sets the one listener, called once for each `awaitRoom`, when a delivery of what was named there is recorded or released. */
  onRoom(listener: (projectId: string) => void): void {
    this.#onRoom = listener;
  }

  /** @param id of a project or of an endpoint */
  awaitRoom(id: string): void {
    this.#short.add(id);
  }

  /** It answered promptly the last time, and no request to it has been under way for long. */
  #answers(endpointId: string): boolean {
    return this.#prompt.has(endpointId) && !this.queues.get(endpointId)?.isSlow(performance.now());
  }

  /** Takes the room of a delivery that is about to be committed: `hold` follows, or `cancel`. */
  reserve(delivery: HeldDelivery): void {
    // A repeat of what is held already is not going to be new.
    if (!this.has(delivery.id)) this.#room.add(delivery);
  }

  /** Frees the room of deliveries that were reserved and are not to be held. */
  cancel(deliveries: readonly HeldDelivery[]): void {
    this.release(deliveries.filter((delivery) => this.#room.get(delivery.id) === delivery));
  }

  counts(): { readonly waiting: number; readonly sending: number; readonly recording: number } {
    let [waiting, sending] = [0, 0];
    for (const queue of this.queues.values()) {
      waiting += queue.waiting;
      sending += queue.sending;
    }
    return { waiting, sending, recording: Math.max(0, this.size - waiting - sending) };
  }

  /** Sets the one listener, called when a queue may have something to send. */
  onReady(listener: () => void): void {
    this.#onReady = listener;
  }

  /** Queues claimed deliveries. After `close`, or if claimed under an earlier agent id, returns them to Postgres instead, due now. */
  hold(deliveries: readonly HeldDelivery[]): void {
    // Claims under an earlier id of this agent are void: other agents may take them at any time.
    if (this.#isClosed || (deliveries[0] && deliveries[0].agentId !== this.options.lease.agentId)) {
      this.cancel(deliveries);
      this.options.releaser.release(deliveries, 0);
      return;
    }
    const heldAtMs = performance.now();
    for (const delivery of deliveries) {
      delivery.heldAtMs = heldAtMs;
      this.#room.add(delivery);
      let queue = this.queues.get(delivery.endpointId);
      if (!queue) {
        this.queues.set(delivery.endpointId, (queue = new EndpointQueue(delivery.endpointId, delivery.projectId)));
        queue.isPrompt = this.#prompt.has(delivery.endpointId);
      }
      queue.push(delivery);
      this.offer(queue);
    }
    this.#onReady();
  }

  /** Frees the room of deliveries and wakes `waitForRoom`. Writes nothing to Postgres, and leaves the queues as they are. */
  release(deliveries: readonly { readonly id: string }[]): void {
    for (const { id } of deliveries) {
      const delivery = this.#room.remove(id);
      if (delivery && this.#short.size > 0 && (this.#short.delete(delivery.projectId) || this.#short.delete(delivery.endpointId)))
        this.#onRoom(delivery.projectId);
    }
    if (this.#roomWaiters.length > 0 && this.room > 0) for (const wake of this.#roomWaiters.splice(0)) wake();
  }

  /** Like `release`, and restarts the time that `waitForRoom` waits. */
  recorded(attempts: readonly Pick<AttemptRecord, 'id'>[]): void {
    this.release(attempts);
    this.#recordedAtMs = performance.now();
    this.#onRecorded();
  }

  /** Returns everything that waits to Postgres. Requests that are being sent end by themselves. */
  releaseWaiting(): void {
    this.#ready.take(Infinity);
    const waiting = [...this.queues.values()].flatMap((queue) => {
      queue.isOffered = false;
      return queue.takeAllBut(0);
    });
    this.release(waiting);
    if (waiting.length > 0) this.options.releaser.release(waiting, 0);
  }

  /** Returns everything that waits to Postgres. From now on `room` is 0. */
  close(): void {
    this.#isClosed = true;
    this.releaseWaiting();
  }

  /** Resolves true as soon as there is room; false if nothing was recorded for `patienceMs`, when waiting is of no use. */
  waitForRoom(patienceMs: number): Promise<boolean> {
    if (this.room > 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const startedAtMs = performance.now();
      const settle = (room: boolean) => {
        clearTimeout(timer);
        this.#roomWaiters = this.#roomWaiters.filter((waiter) => waiter !== wake);
        resolve(room);
      };
      const wake = () => settle(true);
      const look = () => {
        const leftMs = Math.max(this.#recordedAtMs, startedAtMs) + patienceMs - performance.now();
        if (leftMs <= 0 || this.#isClosed) settle(false);
        else timer = setTimeout(look, leftMs);
      };
      let timer = setTimeout(look, patienceMs);
      this.#roomWaiters.push(wake);
    });
  }

  /** The endpoint may be sent to again, or no longer: its queue gets a turn. */
  wake(endpointId: string): void {
    const queue = this.queues.get(endpointId);
    if (!queue || queue.waiting === 0) return;
    this.offer(queue);
    this.#onReady();
  }

  /** Gives the queue a turn, once. Does not call the listener. */
  offer(queue: EndpointQueue): void {
    if (queue.isOffered) return;
    queue.isOffered = true;
    this.#ready.push(queue.projectId, queue);
  }

  /** Whether an offered queue waits for its turn. */
  get hasReady(): boolean {
    return this.#ready.size > 0;
  }

  /** Removes and returns the offered queue whose turn it is, of the projects that may have one. Its `isOffered` stays true until the caller resets it. */
  nextReady(mayRun?: (queue: EndpointQueue) => boolean): EndpointQueue | undefined {
    return this.#ready.take(1, mayRun)[0];
  }

  /** Sets whether the endpoint answers promptly, also for later queues of the endpoint. */
  setPrompt(queue: EndpointQueue, isPrompt: boolean): void {
    queue.isPrompt = isPrompt;
    if (isPrompt) this.#prompt.add(queue.endpointId);
    else this.#prompt.delete(queue.endpointId);
  }

  /** Removes the queue unless deliveries wait in it or are being sent. */
  dropIdle(queue: EndpointQueue): void {
    if (queue.waiting === 0 && queue.sending === 0 && this.queues.get(queue.endpointId) === queue) this.queues.delete(queue.endpointId);
  }
}

/** An endpoint is slow while its oldest request is older than this; it then keeps few deliveries in memory. */
export const SLOW_AFTER_MS = 1_000;

type Sending = { readonly startedAtMs: number };

/** The deliveries of one endpoint that this agent holds: waiting in order, and being sent. */
export class EndpointQueue implements QueueState {
  /** Oldest first: a Set keeps the order of insertion. */
  readonly #sending = new Set<Sending>();
  #waiting: (HeldDelivery | undefined)[] = [];
  #head = 0;
  isOffered = false;
  isPrompt = false;
  /** The one request that a circuit breaker lets through: whether this agent may send it. */
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

  takeAllBut(keep: number): HeldDelivery[] {
    return this.#waiting.splice(this.#head + keep) as HeldDelivery[];
  }

  begin(nowMs: number): Sending {
    const request = { startedAtMs: nowMs };
    this.#sending.add(request);
    return request;
  }

  end(request: Sending): void {
    this.#sending.delete(request);
  }
}
