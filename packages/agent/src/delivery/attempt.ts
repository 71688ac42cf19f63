import type { Log } from '@gateway/core/logging';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { Endpoint } from '../config/config-cache.js';
import type { HeldDelivery } from '../model/delivery.js';
import type { RequestBuilder } from '../request/build-request.js';
import { unsendable, type Sender } from '../request/sender.js';
import { debugLog, type DebugLog } from '../telemetry/debug-log.js';
import type { Measure } from '../telemetry/measure.js';
import { endAttempt, type AttemptTrace } from '../telemetry/trace-attempt.js';
import type { Tracing } from '../telemetry/tracing.js';
import { classifyResponse } from './classify-response.js';
import type { GoneEndpoints } from './gone-endpoints.js';

export interface AttemptRunnerOptions {
  readonly sender: Sender;
  readonly requests: RequestBuilder;
  readonly goneEndpoints: GoneEndpoints;
  readonly log: Log;
  readonly tracing: Tracing | undefined;
  readonly measure: Measure | undefined;
}

interface Attempt {
  readonly endpoint: Endpoint;
  readonly delivery: HeldDelivery;
  readonly startedAtMs: number;
  readonly trace: AttemptTrace | undefined;
  readonly done: (record: AttemptRecord) => void;
}

/** A connection that breaks within this time was probably closed while it was idle. */
const REPEAT_WITHIN_MS = 1_000;

/** Makes attempts: builds the request, sends it, classifies the response. */
export class AttemptRunner {
  readonly #options: AttemptRunnerOptions;
  readonly #debugLog: DebugLog | undefined;

  constructor(options: AttemptRunnerOptions) {
    this.#options = options;
    this.#debugLog = debugLog(options.log);
  }

  /** Calls `done` exactly once, perhaps before this returns. */
  run(endpoint: Endpoint, delivery: HeldDelivery, startedAtMs: number, done: (record: AttemptRecord) => void): void {
    const { measure, tracing } = this.#options;
    measure?.step('wait', delivery.heldAtMs ?? startedAtMs, startedAtMs);
    this.#send({ endpoint, delivery, startedAtMs, trace: tracing?.attempting(delivery), done }, true);
  }

  #send(attempt: Attempt, mayRepeat: boolean): void {
    const { endpoint, delivery, trace } = attempt;
    // In this order, so that the recorded attempt does not end before its response came.
    const startedAtMs = performance.now();
    const requestedAtMs = Date.now();
    const { requests, sender, goneEndpoints } = this.#options;
    let request;
    try {
      request = requests.build(endpoint, delivery, requestedAtMs, trace);
    } catch (error) {
      this.#end(attempt, classifyResponse(attempt, unsendable((error as Error).message), requestedAtMs, 0));
      return;
    }
    sender.send(request, (answer) => {
      const durationMs = performance.now() - startedAtMs;
      // A kept-alive connection that the endpoint closed while the request was on its way says nothing about the endpoint.
      if (answer.failure?.class === 'reset' && answer.status === null && mayRepeat && durationMs < REPEAT_WITHIN_MS) {
        this.#send(attempt, false);
        return;
      }
      if (answer.status === 410) goneEndpoints.deactivate(endpoint);
      this.#end(attempt, classifyResponse(attempt, answer, requestedAtMs, durationMs));
    });
  }

  #end({ endpoint, delivery, startedAtMs, trace, done }: Attempt, record: AttemptRecord): void {
    this.#options.measure?.step('request', startedAtMs);
    if (trace?.span) endAttempt(trace.span, { endpoint, delivery, attempt: record });
    this.#debugLog?.attempted(delivery, record);
    done(record);
  }
}
