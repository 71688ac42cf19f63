import { isOperational, newId } from '@gateway/core/events';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { AgentContext } from '../config/agent-context.js';
import type { Attempt } from '../model/delivery.js';
import type { Attempted, Destination, NotSent, SendSignal } from '../model/destination.js';
import { attemptLog, type AttemptLog } from '../telemetry/debug-log.js';
import { endAttempt } from '../telemetry/tracing.js';
import type { GoneEndpoints } from './gone-endpoints.js';
import { nextAttemptInMs, retriesAtOnce } from './retry-schedule.js';
import type { SubscriptionFunctions } from './subscription-functions.js';

interface AttemptRunnerOptions extends Pick<
  AgentContext,
  'log' | 'clock' | 'lease' | 'measure' | 'tracing'
> {
  readonly destination: Pick<Destination, 'send' | 'attributes'>;
  readonly goneEndpoints: GoneEndpoints;
  readonly functions: Pick<SubscriptionFunctions, 'mayChange' | 'run' | 'messageOf'>;
}

type Done = (result: AttemptRecord | NotSent) => void;

/** Makes a delivery attempt: runs the subscription's function and sends what it returned. */
export class AttemptRunner {
  readonly #debugLog: AttemptLog;
  /** Nothing may be sent after the lease has ended, nor while the time to sign with is unknown. */
  readonly signal: SendSignal;

  constructor(private readonly options: AttemptRunnerOptions) {
    const { lease } = options;
    this.signal = {
      get aborted() {
        return !lease.isHeld;
      },
    };
    this.#debugLog = attemptLog(options.log);
  }

  /** Calls `done` exactly once. */
  run(attempt: Attempt, done: Done): void {
    const prepared = this.prepare(attempt);
    if (!prepared) return this.#send(attempt, done);
    void prepared.then((result) => (result ? done(result) : this.#send(attempt, done)));
  }

  /**
   * Runs the subscription's function, if there is one, and reads the message for the headers of the
   * endpoint. Resolves with the result if nothing is to be sent.
   */
  prepare(attempt: Attempt): Promise<AttemptRecord | NotSent | undefined> | undefined {
    const { measure, functions } = this.options;
    const { delivery, startedAtMs } = attempt;
    measure?.step('wait', delivery.queuedAtMs ?? startedAtMs, startedAtMs);
    const isTemplated = attempt.endpoint.headers?.some((header) => header.is_template);
    if (!isTemplated) return functions.mayChange(delivery) ? this.#transform(attempt) : undefined;
    return this.#withMessage(attempt);
  }

  async #withMessage(attempt: Attempt): Promise<AttemptRecord | NotSent | undefined> {
    const { functions } = this.options;
    const { delivery } = attempt;
    try {
      attempt.message = await functions.messageOf(delivery);
    } catch {
      // Postgres is away, which the claims report.
      return { outcome: 'unsent', reason: 'function', detail: '' };
    }
    return functions.mayChange(delivery) ? this.#transform(attempt) : undefined;
  }

  async #transform(attempt: Attempt): Promise<AttemptRecord | NotSent | undefined> {
    const { functions, clock, tracing } = this.options;
    const { endpoint, delivery } = attempt;
    const sentAtMs = clock.now();
    const made = await functions.run(delivery);
    switch (made.kind) {
      case 'made':
        attempt.delivery = { ...delivery, body: Buffer.from(made.data), isTransformed: true };
        attempt.transformedData = made.data;
        return undefined;
      case 'unchanged':
        return undefined;
      case 'dropped':
        return { outcome: 'unsent', reason: 'dropped', detail: made.reason };
      case 'postponed':
        return { outcome: 'unsent', reason: 'function', detail: '' };
      case 'failed':
        attempt.trace = tracing?.attempting(delivery);
        return this.#recordOf(attempt, {
          outcome: 'retry',
          afterSeconds: null,
          isOverloaded: false,
          mayRetryAtOnce: false,
          target: endpoint.url,
          code: null,
          failure: 'function',
          detail: made.reason,
          headers: null,
          body: '',
          isUp: null,
          sentAtMs,
          durationMs: made.durationMs,
        });
    }
  }

  #send(attempt: Attempt, done: Done): void {
    const sinceMs = this.options.measure ? performance.now() : 0;
    this.begin(attempt);
    void this.options.destination
      .send(attempt, this.signal)
      .then((result) =>
        done(result.outcome === 'unsent' ? result : this.end(attempt, result, sinceMs)),
      );
  }

  /** Before its request. */
  begin(attempt: Attempt): void {
    attempt.trace = this.options.tracing?.attempting(attempt.delivery);
  }

  /** After its request, which began at `sinceMs`. */
  end(attempt: Attempt, sent: Attempted, sinceMs: number): AttemptRecord {
    const { goneEndpoints, measure } = this.options;
    measure?.step('request', sinceMs);
    if (sent.outcome === 'gone') goneEndpoints.deactivate(attempt.endpoint, attempt.delivery);
    return this.#recordOf(attempt, sent);
  }

  #recordOf(attempt: Attempt, sent: Attempted): AttemptRecord {
    const { endpoint, delivery, trace } = attempt;
    const record = attemptRecord(attempt, sent);
    if (trace?.span) {
      const attributes = this.options.destination.attributes(endpoint, record.code);
      endAttempt(trace.span, delivery, record, attributes);
    }
    this.#debugLog?.attempted(delivery, record);
    return record;
  }
}

function attemptRecord(
  { endpoint: { strategy, orderingFailure }, delivery, trace, transformedData }: Attempt,
  sent: Attempted,
): AttemptRecord {
  const { outcome, detail, sentAtMs } = sent;
  const number = delivery.attempts + 1;
  const dueInMs =
    outcome !== 'retry'
      ? null
      : sent.mayRetryAtOnce && retriesAtOnce(strategy, number)
        ? 0
        : nextAttemptInMs(strategy, number, sent.afterSeconds);
  return {
    projectId: delivery.projectId,
    id: delivery.id,
    occurredAtMs: delivery.occurredAtMs,
    attemptId: newId(sentAtMs),
    endpointId: delivery.endpointId,
    number,
    requestedAtMs: sentAtMs,
    durationMs: Math.round(sent.durationMs),
    target: sent.target,
    code: sent.code,
    errorClass: sent.failure,
    detail,
    responseHeaders: sent.headers && JSON.stringify(sent.headers),
    responseBody: sent.body,
    status: outcome === 'delivered' ? 'success' : dueInMs === null ? 'failure' : 'retry',
    dueInMs,
    reason: dueInMs === null ? endReason(outcome, number, detail) : null,
    agentId: delivery.agentId,
    traceparent: trace?.traceparent ?? null,
    transformedData,
    isUp: sent.isUp,
    askedSeconds: sent.isOverloaded ? sent.afterSeconds : undefined,
    isGone: outcome === 'gone',
    isOperational: isOperational(delivery.eventType),
    // After 410, the endpoint is inactive and those behind it are discarded as well.
    onEnd:
      delivery.orderKey === null
        ? null
        : orderingFailure === 'skip' || outcome === 'gone'
          ? 'pass'
          : 'park',
  };
}

function endReason(
  outcome: Attempted['outcome'],
  number: number,
  detail: string | null,
): string | null {
  switch (outcome) {
    case 'delivered':
      return null;
    case 'gone':
      return 'The endpoint answered 410 Gone and was deactivated.';
    case 'failed':
      return `The endpoint will never take it. ${detail ?? ''}`.trim();
    case 'retry':
      return `No retry is left after attempt ${number}. ${detail ?? ''}`.trim();
  }
}
