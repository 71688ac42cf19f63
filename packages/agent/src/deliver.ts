import type { Log } from '@gateway/core';
import { newId } from '@gateway/core';
import type { AttemptRecord } from '@gateway/store';
import { eventLines, type EventLines } from './event-lines.js';
import type { HeldDelivery } from './held-delivery.js';
import { Lane, SLOW_WAITING_MAX } from './lane.js';
import type { Measure } from './measure.js';
import type { Endpoint, MemoryStore } from './memory-store.js';
import { nextAttemptInMs, retryAfterSeconds } from './retry-schedule.js';
import type { RequestBuilder } from './request.js';
import { unsendable, type Answer, type Sender } from './send.js';
import { endAttempt, type AttemptTrace } from './trace-attempt.js';
import type { Tracing } from './tracing.js';

export interface DelivererOptions {
  readonly store: MemoryStore;
  readonly sender: Sender;
  readonly requests: RequestBuilder;
  readonly log: Log;
  /** Requests under way at a time, whole agent. */
  readonly consumers: number;
  /** Requests under way at a time, per endpoint that does not say otherwise. */
  readonly endpointConcurrency: number;
  /** Deliveries that may be held at a time. */
  readonly maxOutstanding: number;
  /** Gets each attempt, to be recorded. */
  readonly record: (attempt: AttemptRecord) => void;
  /** Gives deliveries back to Postgres, due after a while. */
  readonly release: (deliveries: readonly HeldDelivery[], dueInMs: number) => void;
  /** Ends deliveries whose endpoint is out of service for good. */
  readonly discard: (deliveries: readonly HeldDelivery[], reason: string) => void;
  readonly tracing: Tracing | undefined;
  readonly measure?: Measure | undefined;
  /** The endpoint answered 410: it wants no more. */
  readonly gone: (endpoint: Endpoint) => void;
}

/** How long the rest of a slow endpoint's deliveries stay away. */
const SLOW_RELEASE_MS = 10_000;

/**
 * Sends what the agent holds: each endpoint has a lane with its own cap, and lanes take turns, so that one endpoint with a million
 * deliveries or with an answer that never comes does not stand in front of others.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #lanes = new Map<string, Lane>();
  /** Lanes that have something waiting and room to send, in turn. */
  #turns: Lane[] = [];
  #underWay = 0;
  /** Ids of what is held: waiting, under way, or on its way into the record. */
  readonly #held = new Set<string>();
  #recordedAtMs = 0;
  #roomWaiters: (() => void)[] = [];
  #idleWaiters: (() => void)[] = [];
  #slowTimer: NodeJS.Timeout | undefined;
  #draining = false;
  #pumping = false;
  readonly #lines: EventLines | undefined;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#lines = eventLines(options.log);
  }

  /** Deliveries that may still be taken on. */
  get room(): number {
    return this.#draining ? 0 : this.#options.maxOutstanding - this.#held.size;
  }

  get outstanding(): number {
    return this.#held.size;
  }

  /** True for a delivery that this agent has in hand, until its attempt is recorded or it is given back. */
  holds(deliveryId: string): boolean {
    return this.#held.has(deliveryId);
  }

  /** False for an endpoint that is slow and has enough waiting: its deliveries are better off in Postgres. */
  admits(endpointId: string): boolean {
    const lane = this.#lanes.get(endpointId);
    return !lane || lane.waiting < SLOW_WAITING_MAX || !lane.isSlow(performance.now());
  }

  /** Endpoints that admit nothing now. */
  saturated(): Pick<Lane, 'projectId' | 'endpointId'>[] {
    return [...this.#lanes.values()].filter(({ endpointId }) => !this.admits(endpointId));
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
    if (this.#draining) {
      this.#options.release(deliveries, 0);
      return;
    }
    const heldAtMs = this.#options.measure ? performance.now() : undefined;
    for (const delivery of deliveries) {
      if (heldAtMs !== undefined) delivery.heldAtMs = heldAtMs;
      this.#held.add(delivery.id);
      let lane = this.#lanes.get(delivery.endpointId);
      if (!lane) this.#lanes.set(delivery.endpointId, (lane = new Lane(delivery.endpointId, delivery.projectId)));
      lane.push(delivery);
      this.#enqueue(lane, delivery);
    }
    this.#pump();
    this.#slowTimer ??= setInterval(() => this.#releaseSlow(), 500);
  }

  /** Says that attempts are recorded: their room is free. */
  recorded(attempts: readonly Pick<AttemptRecord, 'id'>[]): void {
    this.#letGo(attempts);
    this.#recordedAtMs = performance.now();
    this.#settleIdle();
  }

  /** Forgets what waits: another agent has it. What is under way ends by itself. */
  forgetWaiting(): void {
    this.#letGo(this.#takeWaiting());
    this.#settleIdle();
  }

  /** Sends nothing new, gives back what waits, and resolves when nothing is under way. */
  async drain(): Promise<void> {
    this.#draining = true;
    const waiting = this.#takeWaiting();
    this.#letGo(waiting);
    if (waiting.length > 0) this.#options.release(waiting, 0);
    while (this.#underWay > 0) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
    clearInterval(this.#slowTimer);
  }

  #letGo(deliveries: readonly { readonly id: string }[]): void {
    for (const { id } of deliveries) this.#held.delete(id);
    if (this.#roomWaiters.length > 0 && this.room > 0) for (const wake of this.#roomWaiters.splice(0)) wake();
  }

  #takeWaiting(): HeldDelivery[] {
    this.#turns = [];
    return [...this.#lanes.values()].flatMap((lane) => {
      lane.queued = false;
      return lane.takeAllBut(0);
    });
  }

  #enqueue(lane: Lane, delivery: HeldDelivery): void {
    if (lane.queued || lane.underWay >= this.#cap(delivery)) return;
    lane.queued = true;
    this.#turns.push(lane);
  }

  #cap(delivery: HeldDelivery): number {
    return this.#options.store.endpoint(delivery.projectId, delivery.endpointId)?.concurrency ?? this.#options.endpointConcurrency;
  }

  /**
   * Sends while it may. A request can end before `send` returns (a refused address does), which comes back here: the loop that is under way goes on
   * with what that has freed, for thousands in a row would overflow the stack.
   */
  #pump(): void {
    if (this.#pumping) return;
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

  #takeTurns(turns: readonly Lane[]): void {
    for (const [k, lane] of turns.entries()) {
      if (this.#underWay >= this.#options.consumers) {
        // Those that have not had their turn stand before those that have.
        this.#turns = turns.slice(k).concat(this.#turns);
        return;
      }
      lane.queued = false;
      const delivery = lane.shift();
      if (!delivery) continue;
      this.#start(lane, delivery);
      if (lane.waiting > 0) this.#enqueue(lane, delivery);
      else if (lane.underWay === 0) this.#lanes.delete(lane.endpointId);
    }
  }

  #start(lane: Lane, delivery: HeldDelivery): void {
    const endpoint = this.#options.store.endpoint(delivery.projectId, delivery.endpointId);
    if (endpoint?.status !== 'active') {
      this.#withhold(delivery, endpoint);
      return;
    }
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
      if (lane.waiting > 0 && !this.#draining) this.#enqueue(lane, delivery);
      else if (lane.underWay === 0) this.#lanes.delete(lane.endpointId);
      this.#pump();
      this.#settleIdle();
    });
  }

  #attempt(
    endpoint: Endpoint,
    delivery: HeldDelivery,
    { mayRepeat, trace }: { mayRepeat: boolean; trace: AttemptTrace | undefined },
    done: (record: AttemptRecord) => void,
  ): void {
    const requestedAtMs = Date.now();
    const startedAtMs = performance.now();
    let request;
    try {
      request = this.#options.requests.build(endpoint, delivery, requestedAtMs, trace);
    } catch (error) {
      done(this.#judge(endpoint, delivery, unsendable((error as Error).message), requestedAtMs, 0));
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
      done(this.#judge(endpoint, delivery, answer, requestedAtMs, durationMs));
    });
  }

  /** What an answer makes of the delivery. */
  #judge(endpoint: Endpoint, delivery: HeldDelivery, answer: Answer, requestedAtMs: number, durationMs: number): AttemptRecord {
    const number = delivery.attempts + 1;
    const delivered = answer.failure === null && answer.status !== null && answer.status >= 200 && answer.status < 300;
    const failure = delivered ? null : (answer.failure ?? { class: 'status' as const, message: `The endpoint answered ${answer.status}.` });
    const gone = answer.status === 410;
    const dueInMs =
      delivered || gone
        ? null
        : nextAttemptInMs(endpoint.strategy, number, retryAfterSeconds(answer.headers['retry-after'], requestedAtMs + durationMs));
    return {
      projectId: delivery.projectId,
      id: delivery.id,
      occurredAtMs: delivery.occurredAtMs,
      attemptId: newId(requestedAtMs),
      endpointId: delivery.endpointId,
      number,
      requestedAtMs,
      durationMs: Math.round(durationMs),
      url: endpoint.url,
      httpStatus: answer.status,
      errorClass: failure?.class ?? null,
      error: failure?.message ?? null,
      responseHeaders: answer.status === null ? null : JSON.stringify(answer.headers),
      responseBody: answer.body,
      status: delivered ? 'success' : dueInMs === null ? 'failure' : 'retry',
      dueInMs,
      reason:
        delivered || dueInMs !== null
          ? null
          : gone
            ? 'The endpoint answered 410 Gone and was deactivated.'
            : `No retry is left after attempt ${number}. ${failure?.message ?? ''}`.trim(),
      agentId: delivery.agentId,
      traceparent: null,
    };
  }

  /** The endpoint went out of service while the delivery waited: Postgres keeps it until the endpoint is back, or it ends here. */
  #withhold(delivery: HeldDelivery, endpoint: Endpoint | undefined): void {
    this.#letGo([delivery]);
    if (endpoint?.status === 'paused') this.#options.release([delivery], Infinity);
    else this.#options.discard([delivery], inactiveReason(endpoint));
  }

  #releaseSlow(): void {
    const nowMs = performance.now();
    for (const lane of this.#lanes.values()) {
      if (lane.waiting <= SLOW_WAITING_MAX || !lane.isSlow(nowMs)) continue;
      const excess = lane.takeAllBut(SLOW_WAITING_MAX);
      this.#letGo(excess);
      this.#options.log.debug({ endpoint_id: lane.endpointId, deliveries: excess.length }, 'A slow endpoint: deliveries wait in Postgres.');
      this.#options.release(excess, SLOW_RELEASE_MS);
    }
    if (this.#held.size === 0) {
      clearInterval(this.#slowTimer);
      this.#slowTimer = undefined;
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
