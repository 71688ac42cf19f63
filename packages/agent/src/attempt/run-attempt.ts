import type { ProjectPace } from '@gateway/core/process';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { AttemptRecord, Wait } from '@gateway/store/deliveries';
import type { AgentContext } from '../config/agent-context.js';
import { FUNCTION_WAIT, UNSENT_WAITS } from '../flow-control/backpressure.js';
import type { HeldDelivery } from '../model/delivery.js';
import type { AccessTokens } from '../request/access-tokens.js';
import { type RequestResult, type RequestSender, unsendable } from '../request/sender.js';
import { attemptLog, type AttemptLog } from '../telemetry/debug-log.js';
import { endAttempt } from '../telemetry/tracing.js';
import { type RequestBuilder, Unreadable } from './build-request.js';
import { type Attempt, classifyResponse } from './classify-response.js';
import type { GoneEndpoints } from './gone-endpoints.js';
import type { SubscriptionFunctions } from './subscription-functions.js';

interface AttemptRunnerOptions extends Pick<
  AgentContext,
  'log' | 'clock' | 'lease' | 'measure' | 'tracing'
> {
  readonly sender: RequestSender;
  readonly requests: RequestBuilder;
  readonly accessTokens: AccessTokens;
  readonly goneEndpoints: GoneEndpoints;
  readonly functions: Pick<SubscriptionFunctions, 'mayChange' | 'run'>;
  readonly responsePace: ProjectPace;
}

/**
 * The outcome if no attempt was made: the delivery waits, is discarded, or is left to other agents.
 */
export type Unsent =
  | { readonly unsent: Wait }
  | { readonly unsent: 'discarded' | 'unreadable'; readonly reason: string }
  | { readonly unsent: 'lapsed' };

interface RunningAttempt extends Attempt {
  readonly startedAtMs: number;
  readonly done: (outcome: AttemptRecord | Unsent) => void;
}

/**
 * Makes a delivery attempt: runs the subscription's function, builds and sends the request, and
 * classifies the response.
 */
export class AttemptRunner {
  readonly #debugLog: AttemptLog;

  constructor(private readonly options: AttemptRunnerOptions) {
    this.#debugLog = attemptLog(options.log);
  }

  /** Attempts the delivery. Calls `done` exactly once, possibly before returning. */
  run(
    endpoint: Endpoint,
    delivery: HeldDelivery,
    startedAtMs: number,
    done: RunningAttempt['done'],
  ): void {
    const { measure, functions } = this.options;
    measure?.step('wait', delivery.heldAtMs ?? startedAtMs, startedAtMs);
    if (functions.mayChange(delivery)) void this.#transform(endpoint, delivery, done);
    else this.#send(this.#begin(endpoint, delivery, startedAtMs, done));
  }

  #begin(
    endpoint: Endpoint,
    delivery: HeldDelivery,
    startedAtMs: number,
    done: RunningAttempt['done'],
    transformedData?: string,
  ): RunningAttempt {
    return {
      endpoint,
      delivery,
      startedAtMs,
      trace: this.options.tracing?.attempting(delivery),
      transformedData,
      done,
    };
  }

  async #transform(
    endpoint: Endpoint,
    delivery: HeldDelivery,
    done: RunningAttempt['done'],
  ): Promise<void> {
    const { functions, clock } = this.options;
    const requestedAtMs = clock.now();
    const outcome = await functions.run(delivery);
    const begin = (of: HeldDelivery, data?: string) =>
      this.#begin(endpoint, of, performance.now(), done, data);
    switch (outcome.kind) {
      case 'made':
        return this.#send(
          begin(
            { ...delivery, body: Buffer.from(outcome.data), isTransformed: true },
            outcome.data,
          ),
        );
      case 'unchanged':
        return this.#send(begin(delivery));
      case 'dropped':
        return done({ unsent: 'discarded', reason: outcome.reason });
      case 'postponed':
        return done({ unsent: FUNCTION_WAIT });
      case 'failed': {
        const attempt = begin(delivery);
        const failed: RequestResult = {
          status: null,
          headers: {},
          body: '',
          failure: { class: 'function', message: outcome.reason },
        };
        return this.#end(
          attempt,
          classifyResponse(attempt, failed, requestedAtMs, outcome.durationMs),
        );
      }
    }
  }

  #send(attempt: RunningAttempt): void {
    const { endpoint, delivery, trace } = attempt;
    // The monotonic clock is read first, so that the recorded end of the attempt is never before
    // the response.
    let startedAtMs = performance.now();
    const { requests, accessTokens, sender, goneEndpoints, responsePace, clock, lease } =
      this.options;
    let requestedAtMs = clock.now();
    const answered = (answer: RequestResult) => {
      if (answer.unsent) return attempt.done({ unsent: UNSENT_WAITS[answer.unsent] });
      if (answer.isUnreadable)
        return attempt.done({ unsent: 'unreadable', reason: answer.failure?.message ?? '' });
      const durationMs = performance.now() - startedAtMs;
      if (answer.status === 410) goneEndpoints.deactivate(endpoint, delivery);
      if (answer.status === 401) accessTokens.forget(endpoint);
      this.#end(attempt, classifyResponse(attempt, answer, requestedAtMs, durationMs));
    };
    accessTokens.of(endpoint, (token, failure) => {
      if (failure) return answered(failure);
      // The lease may have ended while waiting for the token. It also ends when the clock is set,
      // because the time to sign with is then unknown.
      if (!lease.isHeld) return attempt.done({ unsent: 'lapsed' });
      // Read again to exclude the wait for the token: the recorded time must be the signed time.
      startedAtMs = performance.now();
      requestedAtMs = clock.now();
      let request;
      try {
        request = requests.build(endpoint, delivery, requestedAtMs, { trace, token });
      } catch (error) {
        return answered({
          ...unsendable((error as Error).message),
          isUnreadable: error instanceof Unreadable,
        });
      }
      sender.send(request, answered, responsePace);
    });
  }

  #end(
    { endpoint, delivery, startedAtMs, trace, done }: RunningAttempt,
    record: AttemptRecord,
  ): void {
    this.options.measure?.step('request', startedAtMs);
    if (trace?.span) endAttempt(trace.span, { endpoint, delivery, attempt: record });
    this.#debugLog?.attempted(delivery, record);
    done(record);
  }
}
