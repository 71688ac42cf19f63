import os from 'node:os';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { AttemptRunner, Unsent } from '../attempt/run-attempt.js';
import type { AgentContext } from '../config/agent-context.js';
import { inactiveReason } from '@gateway/ingest/routing/first-delivery';
import type { Endpoint } from '@gateway/ingest/routing/project';
import { type Backpressure, SLOW_WAITING_MAX } from '../flow-control/backpressure.js';
import { type LoopShares, SHARES_LOOK_MS } from '@gateway/core/process';
import type { HeldDelivery } from '../model/delivery.js';
import type { DueTimes } from './due-times.js';
import { type EndpointQueue, SLOW_AFTER_MS } from './endpoint-queue.js';
import type { DeliveriesInFlight } from './in-flight.js';
import type { DeliveryReleaser } from './release-deliveries.js';

interface SchedulerOptions extends Pick<AgentContext, 'configCache' | 'lease' | 'log' | 'shard'> {
  readonly inFlight: DeliveriesInFlight;
  readonly backpressure: Backpressure;
  readonly attempts: AttemptRunner;
  readonly attemptWriter: { push(attempt: AttemptRecord): void };
  readonly releaser: DeliveryReleaser;
  readonly dueTimes: DueTimes;
  readonly loopShares: LoopShares;
  readonly consumers: number;
}

const LOOK_MS = 500;
/**
 * The maximum time spent starting requests per event-loop turn, because signing large bodies is
 * slow.
 */
const TURN_MS = 4;

/**
 * Selects the next delivery to send. Endpoints take turns, so that neither a backlog nor a hanging
 * endpoint delays other endpoints.
 */
export class Scheduler {
  /** Queues whose endpoint may not use more consumers now. */
  readonly #crowded = new Set<EndpointQueue>();
  #sending = 0;
  #idleWaiters: (() => void)[] = [];
  #lookTimer: NodeJS.Timeout | undefined;
  #isDraining = false;
  #isPumping = false;
  #isPumpingSoon = false;
  #sharesTimer: NodeJS.Timeout | undefined;

  constructor(private readonly options: SchedulerOptions) {
    options.inFlight.onReady(() => {
      this.#pump();
      if (!this.#isDraining) this.#lookTimer ??= setInterval(() => this.#look(), LOOK_MS);
    });
  }

  /** Resumes sending after the lease was renewed. Does nothing while the lease is not held. */
  resume(): void {
    this.#pump();
  }

  /**
   * Stops sending, returns waiting deliveries to Postgres, and resolves once no request is running.
   */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.options.inFlight.close();
    while (this.#sending > 0) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
    clearInterval(this.#lookTimer);
    clearTimeout(this.#sharesTimer);
  }

  /**
   * Starts requests while consumers are free. A request may end before `run` returns, so nested
   * calls return immediately: recursion could overflow the stack.
   */
  #pump(): void {
    const { inFlight, lease, loopShares, consumers } = this.options;
    if (this.#isPumping || this.#isPumpingSoon || !lease.isHeld) return;
    this.#isPumping = true;
    const untilMs = performance.now() + TURN_MS;
    try {
      while (this.#sending < consumers) {
        if (performance.now() > untilMs) return this.#pumpSoon();
        const queue = inFlight.nextReady(({ projectId }) => !loopShares.isOver(projectId));
        if (!queue) return this.#pumpLater();
        queue.isOffered = false;
        if (queue.waiting > 0) loopShares.run(queue.projectId, () => this.#takeTurn(queue));
        inFlight.dropIdle(queue);
      }
    } finally {
      this.#isPumping = false;
    }
  }

  #pumpSoon(): void {
    this.#isPumpingSoon = true;
    setImmediate(() => {
      this.#isPumpingSoon = false;
      this.#pump();
    });
  }

  #pumpLater(): void {
    if (!this.options.inFlight.hasReady) return;
    this.#sharesTimer ??= setTimeout(() => {
      this.#sharesTimer = undefined;
      this.#pump();
    }, SHARES_LOOK_MS);
  }

  #takeTurn(queue: EndpointQueue): void {
    const { configCache, inFlight, backpressure } = this.options;
    const endpoint = configCache.endpoint(queue.projectId, queue.endpointId);
    // The endpoint is at its concurrency limit. The queue is offered again when a request ends.
    if (queue.sending >= backpressure.concurrencyOf(endpoint)) return;
    if (endpoint?.unreadable) return this.#leave(queue);
    if (endpoint?.status === 'active') {
      // The queue is offered again when its endpoint may receive requests, or at the next `#look`.
      if (!this.#maySend(queue, endpoint)) return;
      this.#start(queue, endpoint, queue.shift()!);
    } else {
      this.#withdraw(queue.shift()!, endpoint);
    }
    if (queue.waiting > 0) inFlight.offer(queue);
  }

  #maySend(queue: EndpointQueue, endpoint: Endpoint): boolean {
    const { backpressure, consumers } = this.options;
    if (!queue.hasShare(consumers, consumers - this.#sending)) {
      queue.isOffered = true;
      this.#crowded.add(queue);
      return false;
    }
    const permit = backpressure.permitRequest(queue, endpoint);
    if (permit === 'send') return true;
    this.#keep(queue, permit, endpoint);
    return false;
  }

  #keep(queue: EndpointQueue, most: number, endpoint: Endpoint): void {
    if (queue.waiting <= most) return;
    const { inFlight, backpressure, releaser, log } = this.options;
    const wait = backpressure.waitOf(endpoint, queue.waiting - most);
    if (!wait) return;
    const excess = queue.takeAllBut(most);
    inFlight.release(excess);
    log.debug(
      { endpoint_id: queue.endpointId, deliveries: excess.length, reason: wait.reason },
      'Deliveries wait in Postgres.',
    );
    backpressure.countPostponed(endpoint, wait, excess.length);
    releaser.release(excess, wait);
  }

  #start(queue: EndpointQueue, endpoint: Endpoint, delivery: HeldDelivery): void {
    const isProbe = queue.probe === 'granted';
    if (isProbe) queue.probe = 'none';
    this.#sending++;
    const startedAtMs = performance.now();
    const sending = queue.begin(startedAtMs);
    this.options.attempts.run(endpoint, delivery, startedAtMs, (outcome) => {
      queue.end(sending);
      this.#sending--;
      this.options.loopShares.run(queue.projectId, () =>
        this.#end(queue, endpoint, delivery, { outcome, isProbe }),
      );
      if (this.#crowded.size > 0) this.#uncrowd(1);
      this.#pump();
      if (this.#sending === 0) for (const wake of this.#idleWaiters.splice(0)) wake();
    });
  }

  #end(
    queue: EndpointQueue,
    endpoint: Endpoint,
    delivery: HeldDelivery,
    { outcome, isProbe }: { readonly outcome: AttemptRecord | Unsent; readonly isProbe: boolean },
  ): void {
    const { inFlight, attemptWriter } = this.options;
    const wasSent = !('unsent' in outcome) && outcome.errorClass !== 'function';
    if (isProbe && !wasSent) queue.probe = 'granted';
    if ('unsent' in outcome) this.#release(queue, endpoint, delivery, outcome);
    else attemptWriter.push(outcome);
    if (wasSent) this.#learn(queue, endpoint, outcome, isProbe);
    // `#uncrowd` may choose any crowded queue, so the queue of the ended request is offered
    // directly.
    if (this.#crowded.delete(queue)) queue.isOffered = false;
    if (queue.waiting > 0 && !this.#isDraining) inFlight.offer(queue);
    else inFlight.dropIdle(queue);
  }

  #release(
    queue: EndpointQueue,
    endpoint: Endpoint,
    delivery: HeldDelivery,
    outcome: Unsent,
  ): void {
    const { inFlight, backpressure, releaser, configCache } = this.options;
    inFlight.release([delivery]);
    if (outcome.unsent === 'discarded') return releaser.discard([delivery], outcome.reason);
    if (outcome.unsent === 'unreadable') configCache.markUnreadable(endpoint, outcome.reason);
    if (outcome.unsent === 'unreadable' || outcome.unsent === 'lapsed')
      return releaser.release([delivery], 0);
    inFlight.setPrompt(queue, false);
    backpressure.countPostponed(endpoint, outcome.unsent, 1);
    releaser.release([delivery], outcome.unsent);
  }

  #learn(queue: EndpointQueue, endpoint: Endpoint, record: AttemptRecord, isProbe: boolean): void {
    const { inFlight, backpressure, dueTimes } = this.options;
    const isPrompt = record.durationMs < SLOW_AFTER_MS;
    const wasUnproven = queue.isUnproven;
    if (isPrompt !== queue.isPrompt) inFlight.setPrompt(queue, isPrompt);
    // The deliveries that the claimer left in Postgres while the endpoint was unproven can be
    // claimed now.
    if (wasUnproven && isPrompt) dueTimes.add(queue.projectId, 0);
    backpressure.recordAttempt(queue, endpoint, record, { isPrompt, isProbe });
  }

  #uncrowd(count: number): void {
    let left = count;
    for (const queue of this.#crowded) {
      if (left-- <= 0) return;
      this.#crowded.delete(queue);
      queue.isOffered = false;
      this.options.inFlight.offer(queue);
    }
  }

  /** Returns the waiting deliveries to Postgres. Other agents may claim them immediately. */
  #leave(queue: EndpointQueue): void {
    const waiting = queue.takeAllBut(0);
    this.options.inFlight.release(waiting);
    this.options.releaser.release(waiting, 0);
  }

  /** Returns a delivery to Postgres if its endpoint is paused, and otherwise discards it. */
  #withdraw(delivery: HeldDelivery, endpoint: Endpoint | undefined): void {
    const { inFlight, releaser } = this.options;
    inFlight.release([delivery]);
    if (endpoint?.status === 'paused') releaser.release([delivery], Infinity);
    else releaser.discard([delivery], inactiveReason(endpoint));
  }

  /** Offers waiting queues again, and returns excess deliveries of slow or limited endpoints. */
  #look(): void {
    const { configCache, inFlight, backpressure, shard } = this.options;
    const nowMs = performance.now();
    this.#uncrowd(Infinity);
    for (const queue of inFlight.queues.values()) {
      const isSlow = queue.isSlow(nowMs);
      if (isSlow && queue.isPrompt) inFlight.setPrompt(queue, false);
      if (queue.waiting === 0) continue;
      const project = configCache.projects.get(queue.projectId);
      // The other shard of a project that was moved sends what is given back.
      if (project && project.shard !== shard.name) {
        this.#leave(queue);
        continue;
      }
      const endpoint = configCache.endpoint(queue.projectId, queue.endpointId);
      if (endpoint?.limit) this.#keep(queue, backpressure.roomUnder(endpoint.limit), endpoint);
      if (endpoint && isSlow)
        this.#keep(queue, inFlight.isReserve ? 0 : SLOW_WAITING_MAX, endpoint);
      if (!this.#isDraining) inFlight.offer(queue);
    }
    this.#pump();
    backpressure.forgetIdleEndpoints(nowMs);
    if (inFlight.size === 0) {
      clearInterval(this.#lookTimer);
      this.#lookTimer = undefined;
    }
  }
}

interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
}

/** The number of concurrent requests per core. Two cores give the default pool of 500. */
const PER_CORE = 250;
/**
 * The memory that one request may need: an event of the default maximum size, its response and its
 * connection.
 */
const BYTES_EACH = 2 * 1024 * 1024;

/**
 * Returns the maximum number of concurrent requests, derived from cores and memory if `setting` is
 * 0.
 */
export function consumersOf(setting: number, machine: Machine = thisMachine()): number {
  if (setting > 0) return setting;
  return Math.max(
    1,
    Math.min(PER_CORE * machine.cores, Math.floor(machine.memoryBytes / BYTES_EACH)),
  );
}

function thisMachine(): Machine {
  // Without a memory limit, `constrainedMemory` returns 0, undefined or more than the machine has,
  // depending on Node and cgroups.
  const limit = process.constrainedMemory() || Infinity;
  return { cores: os.availableParallelism(), memoryBytes: Math.min(limit, os.totalmem()) };
}
