import { newId } from '@gateway/core/events';
import { deactivateEndpoint, type NotificationFacts, type Strategy } from '@gateway/store/config';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { AgentContext } from '../config/agent-context.js';
import type { Endpoint } from '../config/config-cache.js';
import type { HeldDelivery } from '../model/delivery.js';
import type { RequestBuilder } from '../request/build-request.js';
import { type Answer, type Sender, unsendable } from '../request/sender.js';
import { debugLog, type DebugLog } from '../telemetry/debug-log.js';
import { type AttemptTrace, endAttempt } from '../telemetry/tracing.js';

export interface AttemptRunnerOptions extends Pick<AgentContext, 'log' | 'clock' | 'measure' | 'tracing'> {
  readonly sender: Sender;
  readonly requests: RequestBuilder;
  readonly goneEndpoints: GoneEndpoints;
}

interface Attempt {
  readonly endpoint: Endpoint;
  readonly delivery: HeldDelivery;
  readonly startedAtMs: number;
  readonly trace: AttemptTrace | undefined;
  readonly done: (record: AttemptRecord) => void;
}

/** Makes attempts: builds the request, sends it, classifies the response. */
export class AttemptRunner {
  readonly #debugLog: DebugLog;

  constructor(private readonly options: AttemptRunnerOptions) {
    this.#debugLog = debugLog(options.log);
  }

  /** Calls `done` exactly once, perhaps before this returns. */
  run(endpoint: Endpoint, delivery: HeldDelivery, startedAtMs: number, done: (record: AttemptRecord) => void): void {
    const { measure, tracing } = this.options;
    measure?.step('wait', delivery.heldAtMs ?? startedAtMs, startedAtMs);
    this.#send({ endpoint, delivery, startedAtMs, trace: tracing?.attempting(delivery), done });
  }

  #send(attempt: Attempt): void {
    const { endpoint, delivery, trace } = attempt;
    // In this order, so that the recorded attempt does not end before its response came.
    const startedAtMs = performance.now();
    const { requests, sender, goneEndpoints, clock } = this.options;
    const requestedAtMs = clock.now();
    let request;
    try {
      request = requests.build(endpoint, delivery, requestedAtMs, trace);
    } catch (error) {
      this.#end(attempt, classifyResponse(attempt, unsendable((error as Error).message), requestedAtMs, 0));
      return;
    }
    sender.send(request, (answer) => {
      const durationMs = performance.now() - startedAtMs;
      if (answer.status === 410) goneEndpoints.deactivate(endpoint);
      this.#end(attempt, classifyResponse(attempt, answer, requestedAtMs, durationMs));
    });
  }

  #end({ endpoint, delivery, startedAtMs, trace, done }: Attempt, record: AttemptRecord): void {
    this.options.measure?.step('request', startedAtMs);
    if (trace?.span) endAttempt(trace.span, { endpoint, delivery, attempt: record });
    this.#debugLog?.attempted(delivery, record);
    done(record);
  }
}

function classifyResponse(
  { endpoint, delivery, trace }: Attempt,
  answer: Answer,
  requestedAtMs: number,
  durationMs: number,
): AttemptRecord {
  const number = delivery.attempts + 1;
  const delivered = answer.failure === null && answer.status !== null && answer.status >= 200 && answer.status < 300;
  const failure = delivered ? null : (answer.failure ?? { class: 'status' as const, message: `The endpoint answered ${answer.status}.` });
  const gone = answer.status === 410;
  const dueInMs =
    delivered || gone
      ? null
      : retriesAtOnce(answer, endpoint.strategy, number)
        ? 0
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
    traceparent: trace?.traceparent ?? null,
  };
}

/** Only a first attempt, and only if another retry is left: the other idle connections may be lost too. */
function retriesAtOnce({ isIdleLoss }: Answer, { retry_count }: Strategy, attempt: number): boolean {
  return isIdleLoss === true && attempt === 1 && retry_count > 1;
}

const EXPONENTIAL_CAP_SECONDS = 7200;
const RETRY_AFTER_CAP_SECONDS = 24 * 3600;

/** Milliseconds until the next attempt, at least what the endpoint asked for; null: none is left. @param attempt number of the failed attempt, from 1 */
export function nextAttemptInMs(
  strategy: Strategy,
  attempt: number,
  retryAfterSeconds: number | null,
  random: () => number = Math.random,
): number | null {
  if (attempt > strategy.retry_count) return null;
  let seconds = strategy.duration;
  if (strategy.type === 'exponential') {
    const full = Math.min(strategy.max_seconds ?? EXPONENTIAL_CAP_SECONDS, strategy.duration * 2 ** Math.min(attempt - 1, 40));
    // The lower half is certain and the upper half drawn, so that what failed together does not come back together.
    seconds = full / 2 + (full / 2) * random();
  }
  if (retryAfterSeconds !== null) seconds = Math.max(seconds, Math.min(retryAfterSeconds, RETRY_AFTER_CAP_SECONDS));
  return Math.round(seconds * 1000);
}

/** Seconds of a `Retry-After` header (RFC 9110 10.2.3: seconds or a date); null if it is missing or invalid. */
export function retryAfterSeconds(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text);
  // Date.parse finds a date in nearly every text that holds a number; those of HTTP begin with the day of the week.
  const dateMs = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(dateMs) ? null : Math.max(0, (dateMs - nowMs) / 1000);
}

interface GoneEndpointsOptions extends Pick<AgentContext, 'database' | 'log'> {
  readonly notifier: { disabledFacts(reason: string): NotificationFacts | null; hurry(): void };
}

/** Deactivates endpoints that answered 410 Gone, without waiting. If that fails, their next 410 tries again. */
export class GoneEndpoints {
  /** Endpoints as they were then: requests in flight get a 410 too, and each write makes every agent read the configuration. */
  readonly #gone = new WeakSet<Endpoint>();

  constructor(private readonly options: GoneEndpointsOptions) {}

  deactivate(endpoint: Endpoint): void {
    if (this.#gone.has(endpoint)) return;
    this.#gone.add(endpoint);
    const { database, log, notifier } = this.options;
    const { projectId, id } = endpoint;
    log.warn({ endpoint_id: id, project_id: projectId }, 'An endpoint answered 410 Gone and is deactivated.');
    const facts = notifier.disabledFacts('The endpoint answered 410 Gone.');
    deactivateEndpoint(database.pool, projectId, id, 'It answered 410 Gone.', facts).then(
      () => notifier.hurry(),
      (error: unknown) => {
        this.#gone.delete(endpoint);
        log.warn(
          { error, project_id: projectId, endpoint_id: id },
          'An endpoint that answered 410 could not be deactivated; its next answer tries again.',
        );
      },
    );
  }
}
