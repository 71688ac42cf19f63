import type { AttemptRecord } from '@gateway/store/deliveries';
import type { HeldDelivery } from '../model/delivery.js';
import type { AgentLease } from '../model/lease.js';
import { FairQueue } from '@gateway/core/queue';
import { EndpointQueue } from './endpoint-queue.js';
import { HeldRoom } from './held-room.js';
import type { DeliveryReleaser } from './release-deliveries.js';

interface InFlightOptions {
  readonly lease: Pick<AgentLease, 'agentId'>;
  readonly releaser: Pick<DeliveryReleaser, 'release'>;
  readonly maxOutstanding: number;
  readonly maxOutstandingBytes: number;
}

/** Deliveries held by this agent, from the commit or claim until the attempt is recorded. */
export class DeliveriesInFlight {
  readonly queues = new Map<string, EndpointQueue>();
  readonly #room: HeldRoom;
  readonly #prompt = new Set<string>();
  /** Projects take turns, and endpoints within them. */
  readonly #ready = new FairQueue<EndpointQueue>();
  #onReady = (): void => {};
  /** Projects and endpoints that wait for capacity of their own. */
  readonly #short = new Set<string>();
  #onRoom = (_projectId: string): void => {};
  #onRecorded = (): void => {};
  #roomWaiters: (() => void)[] = [];
  #recordedAtMs = 0;
  #isClosed = false;

  constructor(private readonly options: InFlightOptions) {
    this.#room = new HeldRoom({
      bytes: options.maxOutstandingBytes,
      deliveries: options.maxOutstanding,
    });
  }

  /** How many more deliveries can be held; 0 or less: none. */
  get room(): number {
    return this.#isClosed ? 0 : this.#room.left;
  }

  /** True when only endpoints that answer get more. */
  get isReserve(): boolean {
    return this.#room.free(false) <= 0;
  }

  /** How many deliveries are held: in commit, waiting, being sent, or being recorded. */
  get size(): number {
    return this.#room.size;
  }

  /** True until the delivery is recorded or released. */
  has(deliveryId: string): boolean {
    return this.#room.get(deliveryId) !== undefined;
  }

  /** Whether the shares of project and endpoint admit another delivery, of any size. */
  hasRoomFor(of: Pick<HeldDelivery, 'projectId' | 'endpointId'>): boolean {
    return this.#room.has(of, false) || (this.#answers(of.endpointId) && this.#room.has(of, true));
  }

  /** Returns the share of a project, with the reserve for endpoints that answer if `answers`. */
  roomOf(
    projectId: string,
    answers: boolean,
  ): { readonly bytes: number; readonly deliveries: number } {
    return this.#room.ofProject(projectId, answers);
  }

  /** Whether the project should finish its held deliveries before it gets more. */
  isBusy(projectId: string): boolean {
    return this.#room.isBusy(projectId);
  }

  /** Sets the single listener, called when attempts are recorded. */
  onRecorded(listener: () => void): void {
    this.#onRecorded = listener;
  }

  /** Sets the single listener, called once per `awaitRoom` when its id has capacity. */
  onRoom(listener: (projectId: string) => void): void {
    this.#onRoom = listener;
  }

  /** @param id of a project or of an endpoint */
  awaitRoom(id: string): void {
    this.#short.add(id);
  }

  /** Whether the last answer was prompt and no request has been running for long. */
  #answers(endpointId: string): boolean {
    return this.#prompt.has(endpointId) && !this.queues.get(endpointId)?.isSlow(performance.now());
  }

  /** Reserves capacity for a delivery about to be committed. Call `hold` or `cancel` next. */
  reserve(delivery: HeldDelivery): void {
    // A duplicate of a held delivery will not be new.
    if (!this.has(delivery.id)) this.#room.add(delivery);
  }

  /** Frees the capacity of deliveries that were reserved and will not be held. */
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

  /** Sets the single listener, called when a queue may have something to send. */
  onReady(listener: () => void): void {
    this.#onReady = listener;
  }

  /** Queues claimed deliveries. After `close` or under a former id, returns them to Postgres. */
  hold(deliveries: readonly HeldDelivery[]): void {
    // Claims under a former id are void: other agents may take them at any time.
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
        this.queues.set(
          delivery.endpointId,
          (queue = new EndpointQueue(delivery.endpointId, delivery.projectId)),
        );
        queue.isPrompt = this.#prompt.has(delivery.endpointId);
      }
      queue.push(delivery);
      this.offer(queue);
    }
    this.#onReady();
  }

  /** Frees the capacity of deliveries, but writes nothing to Postgres and leaves the queues. */
  release(deliveries: readonly { readonly id: string }[]): void {
    for (const { id } of deliveries) {
      const delivery = this.#room.remove(id);
      if (
        delivery &&
        this.#short.size > 0 &&
        (this.#short.delete(delivery.projectId) || this.#short.delete(delivery.endpointId))
      )
        this.#onRoom(delivery.projectId);
    }
    if (this.#roomWaiters.length > 0 && this.room > 0)
      for (const wake of this.#roomWaiters.splice(0)) wake();
  }

  /** Like `release`, and restarts the patience of `waitForRoom`. */
  recorded(attempts: readonly Pick<AttemptRecord, 'id'>[]): void {
    this.release(attempts);
    this.#recordedAtMs = performance.now();
    this.#onRecorded();
  }

  /** Returns waiting deliveries to Postgres. Running requests end by themselves. */
  releaseWaiting(): void {
    this.#ready.take(Infinity);
    const waiting = [...this.queues.values()].flatMap((queue) => {
      queue.isOffered = false;
      return queue.takeAllBut(0);
    });
    this.release(waiting);
    if (waiting.length > 0) this.options.releaser.release(waiting, 0);
  }

  /** Returns waiting deliveries to Postgres. `room` is 0 afterwards. */
  close(): void {
    this.#isClosed = true;
    this.releaseWaiting();
  }

  /** Resolves true once there is capacity; false if nothing was recorded for `patienceMs`. */
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

  /** Offers the queue again after its endpoint's permission to send has changed. */
  wake(endpointId: string): void {
    const queue = this.queues.get(endpointId);
    if (!queue || queue.waiting === 0) return;
    this.offer(queue);
    this.#onReady();
  }

  /** Offers the queue a turn, once. Does not call the listener. */
  offer(queue: EndpointQueue): void {
    if (queue.isOffered) return;
    queue.isOffered = true;
    this.#ready.push(queue.projectId, queue);
  }

  get hasReady(): boolean {
    return this.#ready.size > 0;
  }

  /** Removes and returns the next offered queue. The caller resets its `isOffered`. */
  nextReady(mayRun?: (queue: EndpointQueue) => boolean): EndpointQueue | undefined {
    return this.#ready.take(1, mayRun)[0];
  }

  /** Sets whether the endpoint answers promptly, also for its later queues. */
  setPrompt(queue: EndpointQueue, isPrompt: boolean): void {
    queue.isPrompt = isPrompt;
    if (isPrompt) this.#prompt.add(queue.endpointId);
    else this.#prompt.delete(queue.endpointId);
  }

  /** Removes the queue unless deliveries wait in it or are being sent. */
  dropIdle(queue: EndpointQueue): void {
    if (queue.waiting === 0 && queue.sending === 0 && this.queues.get(queue.endpointId) === queue)
      this.queues.delete(queue.endpointId);
  }
}
