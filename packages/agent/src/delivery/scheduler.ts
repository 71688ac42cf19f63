import os from 'node:os';
import type { AttemptRecord, Wait } from '@gateway/store/deliveries';
import type { AttemptRunner } from '../attempt/run-attempt.js';
import type { BatchRunner, Settled } from '../batches/batch-runner.js';
import { type BatchCollector, takeBatch } from '../batches/next-batch.js';
import type { AgentContext } from '../config/agent-context.js';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { AdaptiveConcurrency } from '../flow-control/adaptive-concurrency.js';
import type { BacklogPacing } from '../flow-control/backlog-pacing.js';
import type { CircuitBreakers } from '../flow-control/circuit-breakers.js';
import type { RateLimits } from '../flow-control/rate-limits.js';
import { type EndpointQueue, SLOW_AFTER_MS } from '../flow-control/endpoint-queue.js';
import {
  concurrencyOf,
  type Consumers,
  type Gates,
  type GateRefusal,
} from '../flow-control/gates.js';
import { type LoopShares, SHARES_LOOK_MS, SLICE_MS } from '@gateway/core/process';
import type { Attempt, InFlightDelivery } from '../model/delivery.js';
import type { NotSent } from '../model/destination.js';
import type { DueTimes } from './due-times.js';
import type { DeliveriesInFlight } from './in-flight.js';
import type { DeliveryReleaser } from './release-deliveries.js';

interface SchedulerOptions extends Pick<AgentContext, 'config' | 'configCache' | 'log'> {
  readonly inFlight: DeliveriesInFlight;
  readonly gates: Gates;
  readonly circuitBreakers: Pick<CircuitBreakers, 'recordProbe' | 'countRequest' | 'backOff'>;
  readonly concurrency: Pick<AdaptiveConcurrency, 'answered' | 'forget'>;
  readonly rateLimits: Pick<RateLimits, 'forget'>;
  readonly backlogPacing: Pick<BacklogPacing, 'answeredWell' | 'forget'>;
  readonly attempts: AttemptRunner;
  readonly batches: BatchRunner;
  readonly collector: BatchCollector;
  readonly attemptWriter: { push(attempt: AttemptRecord): void };
  readonly releaser: DeliveryReleaser;
  readonly dueTimes: DueTimes;
  readonly loopShares: LoopShares;
  readonly consumers: Consumers;
}

/** How long a delivery waits in Postgres that could not be sent. */
const UNSENT: Readonly<Record<'lookup' | 'shortage' | 'function', Wait>> = {
  // The lookups of the project that run now have ended by then.
  lookup: { reason: 'lookup', dueInMs: 5_000, spreadMs: 5_000, paceMs: 0 },
  shortage: { reason: 'shortage', dueInMs: 5_000, spreadMs: 10_000, paceMs: 0 },
  function: { reason: 'function', dueInMs: 5_000, spreadMs: 10_000, paceMs: 0 },
};
const LOOK_MS = 500;

/**
 * Selects the next delivery to send. Endpoints take turns, so that neither a backlog nor a hanging
 * endpoint delays other endpoints.
 */
export class Scheduler {
  readonly #crowded = new Set<EndpointQueue>();
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

  resume(): void {
    this.#look();
  }

  /**
   * Stops sending, returns waiting deliveries to Postgres, and resolves once no request is running.
   */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.options.inFlight.close();
    while (this.options.consumers.busy > 0)
      await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
    clearInterval(this.#lookTimer);
    clearTimeout(this.#sharesTimer);
  }

  /**
   * Starts requests while consumers are free. A request may end before `run` returns, so nested
   * calls return immediately: recursion could overflow the stack.
   */
  #pump(): void {
    const { inFlight, loopShares, consumers } = this.options;
    if (this.#isPumping || this.#isPumpingSoon) return;
    this.#isPumping = true;
    // Signing large bodies is slow.
    const untilMs = performance.now() + SLICE_MS;
    try {
      while (consumers.busy < consumers.size) {
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
    const { configCache, inFlight, gates, collector } = this.options;
    const endpoint = configCache.endpoint(queue.projectId, queue.endpointId);
    if (endpoint?.batch && collector.isCollecting(queue, endpoint)) return;
    const refusal = gates.ask('send', endpoint, queue);
    if (!refusal) {
      if (endpoint!.batch) this.#startBatch(queue, endpoint!);
      else this.#start(queue, endpoint!);
      if (queue.waiting > 0) inFlight.offer(queue);
    } else if (refusal.gate === 'share') {
      queue.isOffered = true;
      this.#crowded.add(queue);
    } else {
      // The queue is offered again when a request of it ends, when a gate opens, or by `#look`.
      this.#withdraw(queue, endpoint, refusal);
    }
  }

  #withdraw(queue: EndpointQueue, endpoint: Endpoint | undefined, refusal: GateRefusal): void {
    const most = refusal.answer === 'postpone' ? refusal.keep : 0;
    const count = queue.waiting - most;
    if (refusal.answer === 'keep' || count <= 0) return;
    const { inFlight, gates, releaser, log } = this.options;
    const { endpointId } = queue;
    log.debug({ endpoint_id: endpointId, count, gate: refusal.gate }, 'Deliveries leave memory.');
    const wait = refusal.answer === 'postpone' ? gates.postpone(endpoint, refusal, count) : 0;
    const excess = queue.takeAllBut(most);
    inFlight.release(excess);
    if (refusal.answer === 'discard') releaser.discard(excess, refusal.reason);
    else releaser.release(excess, wait);
  }

  #start(queue: EndpointQueue, endpoint: Endpoint): void {
    const attempt = attemptOf(endpoint, queue.shift()!, queue);
    this.#begin(queue, attempt);
    this.options.attempts.run(attempt, (result) =>
      this.#ended(queue, attempt, () => {
        this.#settle(queue, attempt, result);
        this.#conclude(queue, attempt, result);
      }),
    );
  }

  /** A batch is one request, to the endpoint and for its limits. */
  #startBatch(queue: EndpointQueue, endpoint: Endpoint): void {
    const attempts = takeBatch(queue, endpoint).map((delivery) =>
      attemptOf(endpoint, delivery, queue),
    );
    const first = attempts[0]!;
    this.#begin(queue, first);
    void this.options.batches
      .run(attempts)
      .then((settled) => this.#ended(queue, first, () => this.#endBatch(queue, first, settled)));
  }

  #endBatch(queue: EndpointQueue, first: Attempt, settled: readonly Settled[]): void {
    for (const [attempt, result] of settled) this.#settle(queue, attempt, result);
    const [, last] = settled.findLast(([, result]) => wasSent(result)) ?? settled.at(-1)!;
    this.#conclude(queue, first, last);
  }

  #begin(queue: EndpointQueue, attempt: Attempt): void {
    if (attempt.isProbe) queue.probe = 'none';
    this.options.consumers.busy++;
    queue.begin(attempt);
  }

  #ended(queue: EndpointQueue, attempt: Attempt, work: () => void): void {
    const { consumers, loopShares } = this.options;
    queue.end(attempt);
    consumers.busy--;
    loopShares.run(queue.projectId, work);
    if (this.#crowded.size > 0) this.#uncrowd(1);
    this.#pump();
    if (consumers.busy === 0) for (const wake of this.#idleWaiters.splice(0)) wake();
  }

  #settle(queue: EndpointQueue, attempt: Attempt, result: AttemptRecord | NotSent): void {
    if ('attemptId' in result) this.options.attemptWriter.push(result);
    else this.#release(queue, attempt, result);
  }

  /** Learns from the request, and offers the queue again. */
  #conclude(queue: EndpointQueue, attempt: Attempt, result: AttemptRecord | NotSent): void {
    const { inFlight } = this.options;
    if (wasSent(result)) this.#learn(queue, attempt, result);
    else if (attempt.isProbe) queue.probe = 'granted';
    // `#uncrowd` may choose any crowded queue, so the queue of the ended request is offered
    // directly.
    if (this.#crowded.delete(queue)) queue.isOffered = false;
    if (queue.waiting > 0 && !this.#isDraining) inFlight.offer(queue);
    else inFlight.dropIdle(queue);
  }

  #release(
    queue: EndpointQueue,
    { endpoint, delivery }: Attempt,
    { reason, detail }: NotSent,
  ): void {
    const { inFlight, gates, releaser, configCache } = this.options;
    inFlight.release([delivery]);
    if (reason === 'dropped') return releaser.discard([delivery], detail);
    if (reason === 'unreadable') configCache.markUnreadable(endpoint, detail);
    if (reason === 'unreadable' || reason === 'aborted') return releaser.release([delivery], 0);
    inFlight.setPrompt(queue, false);
    gates.countPostponed(endpoint, UNSENT[reason], 1);
    releaser.release([delivery], UNSENT[reason]);
  }

  #learn(queue: EndpointQueue, { endpoint, isProbe }: Attempt, record: AttemptRecord): void {
    const { config, inFlight, circuitBreakers, backlogPacing, dueTimes } = this.options;
    const isPrompt = record.durationMs < SLOW_AFTER_MS;
    const wasUnproven = queue.isUnproven;
    if (isPrompt !== queue.isPrompt) inFlight.setPrompt(queue, isPrompt);
    // The deliveries that the claimer left in Postgres while the endpoint was unproven can be
    // claimed now.
    if (wasUnproven && isPrompt) dueTimes.add(queue.projectId, 0);
    const { isUp, isOperational, askedSeconds, durationMs } = record;
    const error = record.detail ?? '';
    const nowMs = performance.now();
    if (askedSeconds !== undefined)
      circuitBreakers.backOff(endpoint, askedSeconds && askedSeconds * 1000);
    if (isUp !== null) {
      const isOverloaded = askedSeconds !== undefined || record.errorClass === 'timeout';
      const answer = { durationMs, isOverloaded, sending: queue.sending + 1 };
      const most = concurrencyOf(endpoint, config);
      this.options.concurrency.answered(endpoint.id, most, answer, nowMs);
    }
    // Closing the circuit breaker expedites the backlog as well.
    if (isProbe) return void circuitBreakers.recordProbe(endpoint, isUp === true, error);
    if (isUp && isPrompt && !queue.isSlow(nowMs)) backlogPacing.answeredWell(endpoint, nowMs);
    if (isUp !== null) circuitBreakers.countRequest(endpoint, isUp, error, isOperational);
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

  /** Offers waiting queues again, and returns excess deliveries of slow or limited endpoints. */
  #look(): void {
    const { configCache, inFlight, gates, rateLimits, backlogPacing, concurrency } = this.options;
    const nowMs = performance.now();
    this.#uncrowd(Infinity);
    for (const queue of inFlight.queues.values()) {
      if (queue.isPrompt && queue.isSlow(nowMs)) inFlight.setPrompt(queue, false);
      if (queue.waiting === 0) continue;
      const endpoint = configCache.endpoint(queue.projectId, queue.endpointId);
      const refusal = endpoint && gates.ask('look', endpoint, queue);
      if (refusal) this.#withdraw(queue, endpoint, refusal);
      if (!this.#isDraining) inFlight.offer(queue);
    }
    this.#pump();
    rateLimits.forget(nowMs);
    backlogPacing.forget(nowMs);
    concurrency.forget(nowMs);
    if (inFlight.size === 0) {
      clearInterval(this.#lookTimer);
      this.#lookTimer = undefined;
    }
  }
}

function attemptOf(
  endpoint: Endpoint,
  delivery: InFlightDelivery,
  { probe }: EndpointQueue,
): Attempt {
  return {
    endpoint,
    delivery,
    startedAtMs: performance.now(),
    isProbe: probe === 'granted',
    trace: undefined,
    transformedData: undefined,
  };
}

function wasSent(result: AttemptRecord | NotSent): result is AttemptRecord {
  return 'attemptId' in result && result.errorClass !== 'function';
}

interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
}

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
