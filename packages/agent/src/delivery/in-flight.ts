import type { AttemptRecord } from '@gateway/store/deliveries';
import type { InFlightDelivery } from '../model/delivery.js';
import type { AgentLease } from '../model/lease.js';
import { FairQueue } from '@gateway/core/queue';
import { EndpointQueue } from '../flow-control/endpoint-queue.js';
import { DeliveryRoom } from './delivery-room.js';
import type { DeliveryReleaser } from './release-deliveries.js';

interface InFlightOptions {
  readonly lease: Pick<AgentLease, 'agentId'>;
  readonly releaser: Pick<DeliveryReleaser, 'release' | 'claimedAgain'>;
  readonly maxOutstanding: number;
  readonly maxOutstandingBytes: number;
}

/** From commit or claim until their attempt is recorded. */
export class DeliveriesInFlight {
  readonly queues = new Map<string, EndpointQueue>();
  readonly #room: DeliveryRoom;
  readonly #prompt = new Set<string>();
  /** May have something to send. Projects take turns, and so do their endpoints. */
  readonly #ready = new FairQueue<EndpointQueue>();
  #onReady = (): void => {};
  /** Ids of projects and endpoints waiting for their own deliveries to free capacity. */
  readonly #short = new Set<string>();
  #onRoom = (_projectId: string): void => {};
  #onRecorded = (): void => {};
  readonly #roomWaiters = new Set<() => void>();
  #isClosed = false;

  constructor(private readonly options: InFlightOptions) {
    this.#room = new DeliveryRoom({
      bytes: options.maxOutstandingBytes,
      deliveries: options.maxOutstanding,
    });
  }

  /** 0 or less means none. */
  get room(): number {
    return this.#isClosed ? 0 : this.#room.left;
  }

  /** Only the reserve is left, which is for endpoints that respond promptly. */
  get isReserve(): boolean {
    return this.#room.free(false) <= 0;
  }

  /** Being committed, waiting, being sent, or being recorded. */
  get size(): number {
    return this.#room.size;
  }

  has(deliveryId: string): boolean {
    return this.#room.get(deliveryId) !== undefined;
  }

  /** Allowed by the shares of the project and the endpoint, for any size. */
  hasRoomFor(of: Pick<InFlightDelivery, 'projectId' | 'endpointId'>): boolean {
    return this.#room.has(of, false) || (this.#answers(of.endpointId) && this.#room.has(of, true));
  }

  /** Includes the reserve only if `answers` is true. */
  roomOf(
    projectId: string,
    answers: boolean,
  ): { readonly bytes: number; readonly deliveries: number } {
    return this.#room.ofProject(projectId, answers);
  }

  /** The project should finish its in-flight deliveries before it gets more. */
  isBusy(projectId: string): boolean {
    return this.room <= 0 || this.#room.isBusy(projectId);
  }

  /** A single listener. */
  onRecorded(listener: () => void): void {
    this.#onRecorded = listener;
  }

  /** A single listener, called once per `awaitRoom` when the capacity is available. */
  onRoom(listener: (projectId: string) => void): void {
    this.#onRoom = listener;
  }

  /**
   * One call of the `onRoom` listener when there is capacity.
   *
   * @param id of a project or of an endpoint
   */
  awaitRoom(id: string): void {
    this.#short.add(id);
  }

  /** The last response was prompt and no request is slow. */
  #answers(endpointId: string): boolean {
    return this.#prompt.has(endpointId) && !this.queues.get(endpointId)?.isSlow(performance.now());
  }

  /** For a delivery about to be committed. Follow with `add` or `cancel`. */
  reserve(delivery: InFlightDelivery): void {
    // A duplicate message's delivery has the id of one already in flight. The commit will not
    // create it, so the one in flight stays.
    if (!this.has(delivery.id)) this.#room.add(delivery);
  }

  /** For deliveries that will not be queued. */
  cancel(deliveries: readonly InFlightDelivery[]): void {
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

  /** A single listener, called when a queue may have something to send. */
  onReady(listener: () => void): void {
    this.#onReady = listener;
  }

  /**
   * After `close`, or if claimed under a former agent id, the deliveries are returned to Postgres
   * instead.
   */
  add(deliveries: readonly InFlightDelivery[]): void {
    // Claims under a former agent id are void: other agents may take the deliveries at any time.
    if (this.#isClosed || (deliveries[0] && deliveries[0].agentId !== this.options.lease.agentId)) {
      this.cancel(deliveries);
      this.options.releaser.release(deliveries, 0);
      return;
    }
    this.options.releaser.claimedAgain(deliveries);
    const queuedAtMs = performance.now();
    for (const delivery of deliveries) {
      delivery.queuedAtMs = queuedAtMs;
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

  /** Frees capacity only, without writing to Postgres or changing queues. */
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
    if (this.#roomWaiters.size > 0 && this.room > 0) this.#wakeWaiters();
  }

  /** A delivery stays if it was claimed again before the answer about its attempt. */
  recorded(attempts: readonly Pick<AttemptRecord, 'id' | 'number'>[]): void {
    this.release(attempts.filter(({ id, number }) => (this.#room.get(id)?.attempts ?? 0) < number));
    this.#onRecorded();
  }

  /** To Postgres. Running requests are not interrupted. */
  releaseWaiting(): void {
    this.#ready.take(Infinity);
    const waiting = [...this.queues.values()].flatMap((queue) => {
      queue.isOffered = false;
      return queue.takeAllBut(0);
    });
    this.release(waiting);
    if (waiting.length > 0) this.options.releaser.release(waiting, 0);
  }

  /** Waiting deliveries return to Postgres. No more deliveries are accepted afterwards. */
  close(): void {
    this.#isClosed = true;
    this.#wakeWaiters();
    this.releaseWaiting();
  }

  /** Resolves with whether there is room, after `ms` at the latest. */
  waitForRoom(ms: number): Promise<boolean> {
    if (this.room > 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#roomWaiters.delete(wake);
        resolve(this.room > 0);
      };
      const timer = setTimeout(wake, ms);
      this.#roomWaiters.add(wake);
    });
  }

  #wakeWaiters(): void {
    for (const wake of this.#roomWaiters) wake();
  }

  /** Offers the endpoint's queue again after its permission to send has changed. */
  wake(endpointId: string): void {
    const queue = this.queues.get(endpointId);
    if (!queue || queue.waiting === 0) return;
    this.offer(queue);
    this.#onReady();
  }

  /** Unless the queue already has a turn. Does not call the `onReady` listener. */
  offer(queue: EndpointQueue): void {
    if (queue.isOffered) return;
    queue.isOffered = true;
    this.#ready.push(queue.projectId, queue);
  }

  get hasReady(): boolean {
    return this.#ready.size > 0;
  }

  /** The caller resets `isOffered`. */
  nextReady(mayRun?: (queue: EndpointQueue) => boolean): EndpointQueue | undefined {
    return this.#ready.take(1, mayRun)[0];
  }

  /** For the endpoint's current and later queues. */
  setPrompt(queue: EndpointQueue, isPrompt: boolean): void {
    queue.isPrompt = isPrompt;
    if (isPrompt) this.#prompt.add(queue.endpointId);
    else this.#prompt.delete(queue.endpointId);
  }

  /** If the queue is empty and none of its requests is running. */
  dropIdle(queue: EndpointQueue): void {
    if (queue.waiting === 0 && queue.sending === 0 && this.queues.get(queue.endpointId) === queue)
      this.queues.delete(queue.endpointId);
  }
}
