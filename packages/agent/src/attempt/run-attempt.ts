import type { Endpoint } from '@gateway/ingest/routing/project';
import type { AttemptRecord, Wait } from '@gateway/store/deliveries';
import type { AgentContext } from '../config/agent-context.js';
import type { InFlightDelivery } from '../model/delivery.js';
import type { Attempted, Destination, NotSent, SendSignal } from '../model/destination.js';
import { attemptLog, type AttemptLog } from '../telemetry/debug-log.js';
import { type AttemptTrace, endAttempt } from '../telemetry/tracing.js';
import { type Attempt, attemptRecord } from './attempt-record.js';
import type { GoneEndpoints } from './gone-endpoints.js';
import type { SubscriptionFunctions } from './subscription-functions.js';

const WAITS: Readonly<Record<'lookup' | 'shortage' | 'function', Wait>> = {
  // The lookups of the project that run now have ended by then.
  lookup: { reason: 'lookup', dueInMs: 5_000, spreadMs: 5_000, paceMs: 0 },
  shortage: { reason: 'shortage', dueInMs: 5_000, spreadMs: 10_000, paceMs: 0 },
  function: { reason: 'function', dueInMs: 5_000, spreadMs: 10_000, paceMs: 0 },
};

interface AttemptRunnerOptions extends Pick<
  AgentContext,
  'log' | 'clock' | 'lease' | 'measure' | 'tracing'
> {
  readonly destination: Pick<Destination, 'send' | 'attributes'>;
  readonly goneEndpoints: GoneEndpoints;
  readonly functions: Pick<SubscriptionFunctions, 'mayChange' | 'run'>;
}

/**
 * The outcome if no attempt was made: the delivery waits, is discarded, or is left to other agents.
 */
export type Unsent =
  | { readonly unsent: Wait }
  | { readonly unsent: 'discarded' | 'unreadable'; readonly reason: string }
  | { readonly unsent: 'lapsed' };

interface RunningAttempt extends Attempt {
  readonly trace: AttemptTrace | undefined;
  readonly startedAtMs: number;
  readonly done: (outcome: AttemptRecord | Unsent) => void;
}

/** Makes a delivery attempt: runs the subscription's function and sends what it returned. */
export class AttemptRunner {
  readonly #debugLog: AttemptLog;
  /** Nothing may be sent after the lease has ended, nor while the time to sign with is unknown. */
  readonly #signal: SendSignal;

  constructor(private readonly options: AttemptRunnerOptions) {
    const { lease } = options;
    this.#signal = {
      get aborted() {
        return !lease.isHeld;
      },
    };
    this.#debugLog = attemptLog(options.log);
  }

  /** Attempts the delivery. Calls `done` exactly once. */
  run(
    endpoint: Endpoint,
    delivery: InFlightDelivery,
    startedAtMs: number,
    done: RunningAttempt['done'],
  ): void {
    const { measure, functions } = this.options;
    measure?.step('wait', delivery.queuedAtMs ?? startedAtMs, startedAtMs);
    if (functions.mayChange(delivery)) void this.#transform(endpoint, delivery, done);
    else this.#send(this.#begin(endpoint, delivery, startedAtMs, done));
  }

  #begin(
    endpoint: Endpoint,
    delivery: InFlightDelivery,
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
    delivery: InFlightDelivery,
    done: RunningAttempt['done'],
  ): Promise<void> {
    const { functions, clock } = this.options;
    const requestedAtMs = clock.now();
    const outcome = await functions.run(delivery);
    const begin = (of: InFlightDelivery, data?: string) =>
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
        return done({ unsent: WAITS.function });
      case 'failed': {
        const attempt = begin(delivery);
        return this.#end(attempt, {
          outcome: 'retry',
          afterSeconds: null,
          mayRetryAtOnce: false,
          target: endpoint.url,
          code: null,
          failure: 'function',
          detail: outcome.reason,
          headers: null,
          body: '',
          isUp: null,
          sentAtMs: requestedAtMs,
          durationMs: outcome.durationMs,
        });
      }
    }
  }

  #send(attempt: RunningAttempt): void {
    const { destination, goneEndpoints } = this.options;
    const { endpoint, delivery, done } = attempt;
    void destination.send(attempt, this.#signal).then((result) => {
      if (result.outcome === 'unsent') return done(unsent(result));
      if (result.outcome === 'gone') goneEndpoints.deactivate(endpoint, delivery);
      this.#end(attempt, result);
    });
  }

  #end(attempt: RunningAttempt, sent: Attempted): void {
    const { measure, destination } = this.options;
    const { endpoint, delivery, startedAtMs, trace, done } = attempt;
    const record = attemptRecord(attempt, sent);
    measure?.step('request', startedAtMs);
    if (trace?.span)
      endAttempt(trace.span, delivery, record, destination.attributes(endpoint, record.code));
    this.#debugLog?.attempted(delivery, record);
    done(record);
  }
}

function unsent({ reason, detail }: NotSent): Unsent {
  switch (reason) {
    case 'lookup':
    case 'shortage':
      return { unsent: WAITS[reason] };
    case 'unreadable':
      return { unsent: 'unreadable', reason: detail };
    case 'aborted':
      return { unsent: 'lapsed' };
  }
}
