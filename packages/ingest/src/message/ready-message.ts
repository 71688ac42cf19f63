import { GatewayError } from '@gateway/core/errors';
import type { Outcome } from '@gateway/plugin';
import type { KeptMessage, NewEvent } from '@gateway/store/events';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { Rejection } from '../validate/reject-codes.js';

export interface Creation {
  readonly id: string;
  readonly duplicate: boolean;
}

const RETRY_AFTER_SECONDS = 1;

export function closing(): GatewayError {
  return new GatewayError('closing', { retryAfterSeconds: RETRY_AFTER_SECONDS });
}

/** Called once; with `creationOf` each event of the message if there was a commit. */
export type Settle = (outcome: Outcome, creationOf?: (event: NewEvent) => Creation) => void;

/**
 * A message with everything that must be committed before it may be acknowledged or answered: a
 * posted event or, as a `SourceMessage`, what a source handed over.
 */
export class ReadyMessage {
  rejection: Rejection | null = null;
  /** Set with a rejection, if the message has a source. */
  quarantined: QuarantinedMessage | null = null;
  /** The message itself, if its source keeps messages. */
  kept: KeptMessage | null = null;
  /** The work already counted toward the project's pace; Infinity if it does not count. */
  counted = 0;
  /**
   * The share of a commit's capacity that the message takes, by its events or bytes. Keeps commits
   * short even if a function creates many events.
   */
  size = 0;
  /** When the message may be committed, on the monotonic clock; 0 if immediately. */
  dueAtMs = 0;
  /** Whether the message's timestamp is impossible, so its arrival dates it. */
  isUndated = false;
  /**
   * Ends the message with the error of its commit. The commit of a message with it is not retried,
   * because its caller waits.
   */
  failed: ((error: unknown) => void) | undefined;

  /** @param events usually one; a function may make several. Empty if the message is rejected */
  constructor(
    readonly projectId: string,
    public events: readonly NewEvent[],
    public settled: Settle = () => undefined,
  ) {}

  reject(rejection: Rejection): void {
    this.events = [];
    this.rejection = rejection;
  }

  /**
   * Dates an undated message by its first arrival, or keeps its own time if `arrivedAtMs` is
   * undefined.
   */
  date(_arrivedAtMs: number | undefined): void {}

  /**
   * Resolves an id collision: keeps only these events, under new ids that include the digest. A
   * posted event with the same id is the same event.
   */
  distinguish(_ids: ReadonlySet<string>): void {}

  settle(outcome: Outcome, creationOf?: Parameters<Settle>[1]): void {
    this.settled(outcome, creationOf);
  }
}
