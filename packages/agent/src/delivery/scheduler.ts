import type { Log } from '@gateway/core/logging';
import type { AttemptRecord, Wait } from '@gateway/store/deliveries';
import type { BacklogPacing } from '../flow-control/backlog-pacing.js';
import { verdictOf } from '../flow-control/circuit-breaker-state.js';
import type { CircuitBreakers, Gate } from '../flow-control/circuit-breakers.js';
import { debugLog, type DebugLog } from '../telemetry/debug-log.js';
import type { HeldDelivery } from '../model/delivery.js';
import { judge } from './classify-response.js';
import { EndpointQueue, SLOW_AFTER_MS, SLOW_WAITING_MAX } from './endpoint-queue.js';
import type { RateLimits } from '../flow-control/rate-limits.js';
import type { Measure } from '../telemetry/measure.js';
import type { Endpoint, ConfigCache } from '../config/config-cache.js';
import type { RequestBuilder } from '../request/build-request.js';
import { unsendable, type Sender } from '../request/sender.js';
import { endAttempt, type AttemptTrace } from '../telemetry/trace-attempt.js';
import type { Tracing } from '../telemetry/tracing.js';
import { PROBED_WAITING_MAX, Backpressure } from '../flow-control/backpressure.js';

export interface SchedulerOptions {
  readonly store: ConfigCache;
  readonly sender: Sender;
  readonly requests: RequestBuilder;
  readonly log: Log;
  /** Requests under way at a time, whole agent. */
  readonly consumers: number;
  /** Requests under way at a time, per endpoint that does not say otherwise. */
  readonly endpointConcurrency: number;
  /** Deliveries that may be held at a time. */
  readonly maxOutstanding: number;
  readonly circuitBreakers: CircuitBreakers;
  readonly rateLimits: RateLimits;
  readonly backlogPacing: BacklogPacing;
  /** A project may have due deliveries that may be claimed now. */
  readonly onWanted: (projectId: string) => void;
  /** Gets each attempt, to be recorded. */
  readonly record: (attempt: AttemptRecord) => void;
  /** The id under which this agent claims now. */
  readonly agentId: () => number;
  /** False while another agent may have taken what is held: nothing new is sent until `resume`. */
  readonly isLeased: () => boolean;
  /** Gives deliveries back to Postgres, due after so many milliseconds, or put off. */
  readonly release: (deliveries: readonly HeldDelivery[], wait: number | Wait) => void;
  /** Ends deliveries whose endpoint is out of service for good. */
  readonly discard: (deliveries: readonly HeldDelivery[], reason: string) => void;
  readonly tracing: Tracing | undefined;
  readonly measure?: Measure | undefined;
  /** The endpoint answered 410: it wants no more. */
  readonly gone: (endpoint: Endpoint) => void;
}

/** Bodies that are held take this much memory, and one batch more, however large they are. */
const HELD_BYTES_MAX = 32 * 1024 * 1024;
/** How often lanes are looked at that wait for something. */
const LOOK_MS = 500;

/**
 * Sends what the agent holds: each endpoint has a lane with its own cap, and lanes take turns, so that one endpoint with a million
 * deliveries or with an answer that never comes does not stand in front of others.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #lanes = new Map<string, EndpointQueue>();
  /** Lanes that have something waiting and room to send, in turn. */
  #turns: EndpointQueue[] = [];
  /** Lanes that have something waiting and may not have more of the consumers now. */
  #crowded: EndpointQueue[] = [];
  /** Endpoints whose last request was answered in good time: others get less of the consumers. */
  readonly #prompt = new Set<string>();
  #underWay = 0;
  /** What is held, waiting, under way, or on its way into the record, by its id: the bytes of its body. */
  readonly #held = new Map<string, number>();
  #heldBytes = 0;
  #recordedAtMs = 0;
  #roomWaiters: (() => void)[] = [];
  #idleWaiters: (() => void)[] = [];
  #lookTimer: NodeJS.Timeout | undefined;
  #draining = false;
  #pumping = false;
  readonly #lines: DebugLog | undefined;
  /** Who may not be sent to now, and how their deliveries wait. */
  readonly waits: Backpressure;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.waits = new Backpressure({ ...options, lanes: this.#lanes, capOf: (endpoint) => this.#cap(endpoint) });
    this.#lines = debugLog(options.log);
  }

  /** Deliveries that may still be taken on. */
  get room(): number {
    return this.#draining || this.#heldBytes >= HELD_BYTES_MAX ? 0 : this.#options.maxOutstanding - this.#held.size;
  }

  get outstanding(): number {
    return this.#held.size;
  }

  /** True for a delivery that this agent has in hand, until its attempt is recorded or it is given back. */
  holds(deliveryId: string): boolean {
    return this.#held.has(deliveryId);
  }

  /** Something may be sent to an endpoint again, or no longer. */
  reconsider(endpointId: string): void {
    const lane = this.#lanes.get(endpointId);
    if (!lane || lane.waiting === 0) return;
    this.#enqueue(lane);
    this.#pump();
  }

  /** What is held, by how far it is: waiting for its request, under way, or answered and on its way into the record. */
  inHand(): { readonly waiting: number; readonly underWay: number; readonly recording: number } {
    let waiting = 0;
    for (const lane of this.#lanes.values()) waiting += lane.waiting;
    return { waiting, underWay: this.#underWay, recording: Math.max(0, this.#held.size - waiting - this.#underWay) };
  }

  /** Resolves true as soon as there is room, or false when nothing was recorded for `patienceMs`: then waiting is of no use. */
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
        if (leftMs <= 0 || this.#draining) settle(false);
        else timer = setTimeout(look, leftMs);
      };
      let timer = setTimeout(look, patienceMs);
      this.#roomWaiters.push(wake);
    });
  }

  push(deliveries: readonly HeldDelivery[]): void {
    // What was committed under an earlier id of this agent is nobody's: others may take it at any moment.
    if (this.#draining || (deliveries[0] && deliveries[0].agentId !== this.#options.agentId())) {
      this.#options.release(deliveries, 0);
      return;
    }
    const heldAtMs = this.#options.measure ? performance.now() : undefined;
    for (const delivery of deliveries) {
      if (heldAtMs !== undefined) delivery.heldAtMs = heldAtMs;
      if (!this.#held.has(delivery.id)) this.#heldBytes += delivery.body.byteLength;
      this.#held.set(delivery.id, delivery.body.byteLength);
      let lane = this.#lanes.get(delivery.endpointId);
      if (!lane) this.#lanes.set(delivery.endpointId, (lane = this.#newLane(delivery)));
      lane.push(delivery);
      this.#enqueue(lane);
    }
    this.#pump();
    this.#lookTimer ??= setInterval(() => this.#look(), LOOK_MS);
  }

  /** Says that attempts are recorded: their room is free. */
  recorded(attempts: readonly Pick<AttemptRecord, 'id'>[]): void {
    this.#letGo(attempts);
    this.#recordedAtMs = performance.now();
    this.#settleIdle();
  }

  /** Gives back what waits: it was claimed under an earlier id of this agent, and what nobody has taken since is due at once. What is under way ends by itself. */
  releaseWaiting(): void {
    const waiting = this.#takeWaiting();
    this.#letGo(waiting);
    if (waiting.length > 0) this.#options.release(waiting, 0);
    this.#settleIdle();
  }

  /** Goes on sending: the lease was renewed. */
  resume(): void {
    this.#pump();
  }

  /** Sends nothing new, gives back what waits, and resolves when nothing is under way. */
  async drain(): Promise<void> {
    this.#draining = true;
    const waiting = this.#takeWaiting();
    this.#letGo(waiting);
    if (waiting.length > 0) this.#options.release(waiting, 0);
    while (this.#underWay > 0) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
    clearInterval(this.#lookTimer);
  }

  #letGo(deliveries: readonly { readonly id: string }[]): void {
    for (const { id } of deliveries) {
      this.#heldBytes -= this.#held.get(id) ?? 0;
      this.#held.delete(id);
    }
    if (this.#roomWaiters.length > 0 && this.room > 0) for (const wake of this.#roomWaiters.splice(0)) wake();
  }

  #newLane({ endpointId, projectId }: HeldDelivery): EndpointQueue {
    const lane = new EndpointQueue(endpointId, projectId);
    lane.isPrompt = this.#prompt.has(endpointId);
    return lane;
  }

  #takeWaiting(): HeldDelivery[] {
    this.#turns = [];
    this.#crowded = [];
    return [...this.#lanes.values()].flatMap((lane) => {
      lane.queued = false;
      return lane.takeAllBut(0);
    });
  }

  #enqueue(lane: EndpointQueue): void {
    if (lane.queued || lane.underWay >= this.#cap(this.#endpointOf(lane))) return;
    lane.queued = true;
    this.#turns.push(lane);
  }

  #endpointOf({ projectId, endpointId }: EndpointQueue): Endpoint | undefined {
    return this.#options.store.endpoint(projectId, endpointId);
  }

  #cap(endpoint: Endpoint | undefined): number {
    return endpoint?.concurrency ?? this.#options.endpointConcurrency;
  }

  /**
   * Sends while it may. A request can end before `send` returns (a refused address does), which comes back here: the loop that is under way goes on
   * with what that has freed, for thousands in a row would overflow the stack.
   */
  #pump(): void {
    if (this.#pumping || !this.#options.isLeased()) return;
    this.#pumping = true;
    try {
      while (this.#underWay < this.#options.consumers && this.#turns.length > 0) {
        const turns = this.#turns;
        this.#turns = [];
        this.#takeTurns(turns);
      }
    } finally {
      this.#pumping = false;
    }
  }

  #takeTurns(turns: readonly EndpointQueue[]): void {
    for (const [k, lane] of turns.entries()) {
      if (this.#underWay >= this.#options.consumers) {
        // Those that have not had their turn stand before those that have.
        this.#turns = turns.slice(k).concat(this.#turns);
        return;
      }
      lane.queued = false;
      if (lane.waiting > 0) this.#takeTurn(lane);
      this.#dropIdle(lane);
    }
  }

  #dropIdle(lane: EndpointQueue): void {
    if (lane.waiting === 0 && lane.underWay === 0 && this.#lanes.get(lane.endpointId) === lane) this.#lanes.delete(lane.endpointId);
  }

  #takeTurn(lane: EndpointQueue): void {
    const endpoint = this.#endpointOf(lane);
    if (endpoint?.status === 'active') {
      // Whoever changes what stands in its way, or the next look, gives it another turn.
      if (!this.#maySend(lane, endpoint)) return;
      this.#start(lane, endpoint, lane.shift()!);
    } else {
      this.#withhold(lane.shift()!, endpoint);
    }
    if (lane.waiting > 0) this.#enqueue(lane);
  }

  #maySend(lane: EndpointQueue, endpoint: Endpoint): boolean {
    const { circuitBreakers, rateLimits, consumers } = this.#options;
    if (!lane.hasShare(consumers, consumers - this.#underWay)) {
      lane.queued = true;
      this.#crowded.push(lane);
      return false;
    }
    const gate = circuitBreakers.gate(lane.endpointId);
    if (gate && !this.#mayPass(gate, lane, endpoint)) return false;
    if (!endpoint.limit || rateLimits.take(endpoint, endpoint.limit, lane.waiting, performance.now())) return true;
    this.#keep(lane, rateLimits.room(endpoint.limit), endpoint);
    return false;
  }

  /** What a breaker that is not closed lets through: the probe that this agent was granted. */
  #mayPass(gate: Gate, lane: EndpointQueue, endpoint: Endpoint): boolean {
    if (lane.probe === 'granted') return true;
    if (gate.state !== 'due') {
      this.#keep(lane, gate.state === 'open' ? 0 : PROBED_WAITING_MAX, endpoint);
    } else if (lane.probe === 'none') {
      lane.probe = 'asked';
      void this.#options.circuitBreakers.probe(endpoint).then((isGranted) => {
        lane.probe = isGranted ? 'granted' : 'none';
        if (isGranted && this.#lanes.get(lane.endpointId) === lane) this.reconsider(lane.endpointId);
      });
    }
    return false;
  }

  /** Gives back what of a lane is beyond `most`. */
  #keep(lane: EndpointQueue, most: number, endpoint: Endpoint): void {
    if (lane.waiting <= most) return;
    const wait = this.waits.later(endpoint, lane.waiting - most);
    if (!wait) return;
    const excess = lane.takeAllBut(most);
    this.#letGo(excess);
    const { log, release } = this.#options;
    log.debug({ endpoint_id: lane.endpointId, deliveries: excess.length, reason: wait.reason }, 'Deliveries wait in Postgres.');
    this.waits.note(endpoint, wait, excess.length);
    release(excess, wait);
  }

  #start(lane: EndpointQueue, endpoint: Endpoint, delivery: HeldDelivery): void {
    const isProbe = lane.probe === 'granted';
    if (isProbe) lane.probe = 'none';
    this.#underWay++;
    const startedAtMs = performance.now();
    const end = lane.begin(startedAtMs);
    const { measure } = this.#options;
    measure?.step('wait', delivery.heldAtMs ?? startedAtMs, startedAtMs);
    const trace = this.#options.tracing?.attempting(delivery);
    this.#attempt(endpoint, delivery, { mayRepeat: true, trace }, (judged) => {
      const record = trace ? { ...judged, traceparent: trace.traceparent } : judged;
      end();
      this.#underWay--;
      measure?.step('request', startedAtMs);
      if (trace?.span) endAttempt(trace.span, { endpoint, delivery, attempt: record });
      this.#lines?.attempted(delivery, record);
      this.#options.record(record);
      this.#answered(lane, endpoint, record, isProbe);
      if (lane.waiting > 0 && !this.#draining) this.#enqueue(lane);
      else this.#dropIdle(lane);
      const crowded = this.#crowded.shift();
      if (crowded) this.#turns.push(crowded);
      this.#pump();
      this.#settleIdle();
    });
  }

  /** Learns from an answer how the endpoint does. */
  #answered(lane: EndpointQueue, endpoint: Endpoint, attempt: AttemptRecord, isProbe: boolean): void {
    const isPrompt = attempt.durationMs < SLOW_AFTER_MS;
    const { circuitBreakers, backlogPacing, onWanted } = this.#options;
    const wasUnproven = lane.isUnproven;
    if (isPrompt !== lane.isPrompt) this.#setPrompt(lane, isPrompt);
    if (wasUnproven && isPrompt) onWanted(lane.projectId);
    const verdict = verdictOf(attempt);
    // A probe that succeeds closes the breaker, which hastens as well.
    if (!isProbe && isPrompt && verdict === 'good' && backlogPacing.has(endpoint.id)) this.#answeredWell(lane, endpoint);
    if (isProbe) void circuitBreakers.probed(endpoint, verdict === 'good', attempt.error ?? '');
    else if (verdict !== null) circuitBreakers.attempted(endpoint, verdict === 'good', attempt.error ?? '');
  }

  #answeredWell(lane: EndpointQueue, endpoint: Endpoint): void {
    const nowMs = performance.now();
    if (!lane.isSlow(nowMs)) this.#options.backlogPacing.answeredWell(endpoint, nowMs);
  }

  #setPrompt(lane: EndpointQueue, isPrompt: boolean): void {
    lane.isPrompt = isPrompt;
    if (isPrompt) this.#prompt.add(lane.endpointId);
    else this.#prompt.delete(lane.endpointId);
  }

  #attempt(
    endpoint: Endpoint,
    delivery: HeldDelivery,
    { mayRepeat, trace }: { mayRepeat: boolean; trace: AttemptTrace | undefined },
    done: (record: AttemptRecord) => void,
  ): void {
    // In this order: whatever comes between the two, the attempt's record does not end before its answer.
    const startedAtMs = performance.now();
    const requestedAtMs = Date.now();
    let request;
    try {
      request = this.#options.requests.build(endpoint, delivery, requestedAtMs, trace);
    } catch (error) {
      done(judge(endpoint, delivery, unsendable((error as Error).message), { requestedAtMs, durationMs: 0 }));
      return;
    }
    this.#options.sender.send(request, (answer) => {
      const durationMs = performance.now() - startedAtMs;
      // A kept-alive connection that the endpoint closed while the request was on its way says nothing about the endpoint.
      if (answer.failure?.class === 'reset' && answer.status === null && mayRepeat && durationMs < 1_000) {
        this.#attempt(endpoint, delivery, { mayRepeat: false, trace }, done);
        return;
      }
      if (answer.status === 410) this.#options.gone(endpoint);
      done(judge(endpoint, delivery, answer, { requestedAtMs, durationMs }));
    });
  }

  /** The endpoint went out of service while the delivery waited: Postgres keeps it until the endpoint is back, or it ends here. */
  #withhold(delivery: HeldDelivery, endpoint: Endpoint | undefined): void {
    this.#letGo([delivery]);
    if (endpoint?.status === 'paused') this.#options.release([delivery], Infinity);
    else this.#options.discard([delivery], inactiveReason(endpoint));
  }

  /** Looks at the lanes that wait for something: time alone may have changed it. */
  #look(): void {
    const nowMs = performance.now();
    const { rateLimits, backlogPacing } = this.#options;
    this.#turns.push(...this.#crowded.splice(0));
    for (const lane of this.#lanes.values()) {
      const isSlow = lane.isSlow(nowMs);
      if (isSlow && lane.isPrompt) this.#setPrompt(lane, false);
      if (lane.waiting === 0) continue;
      const endpoint = this.#endpointOf(lane);
      if (endpoint?.limit) this.#keep(lane, rateLimits.room(endpoint.limit), endpoint);
      if (endpoint && isSlow) this.#keep(lane, SLOW_WAITING_MAX, endpoint);
      if (!this.#draining) this.#enqueue(lane);
    }
    this.#pump();
    rateLimits.forget(nowMs);
    backlogPacing.forget(nowMs);
    if (this.#held.size === 0) {
      clearInterval(this.#lookTimer);
      this.#lookTimer = undefined;
    }
  }

  #settleIdle(): void {
    if (this.#underWay === 0 && this.#idleWaiters.length > 0) for (const wake of this.#idleWaiters.splice(0)) wake();
  }
}

/** Why a delivery to this endpoint is discarded, for a person. */
export function inactiveReason(endpoint: Endpoint | undefined): string {
  if (!endpoint) return 'The endpoint was deleted.';
  return `The endpoint is inactive${endpoint.statusReason ? `: ${endpoint.statusReason}` : '.'}`;
}
