import { GatewayError } from '@gateway/core/errors';
import type { Outcome } from '@gateway/plugin';
import type { KeptMessage, NewEvent } from '@gateway/store/events';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { Rejection } from '../validate/reject-codes.js';

/** An event that is ready to be committed but not yet routed. */
export interface ReadyEvent extends Omit<NewEvent, 'status' | 'outcome' | 'headers'> {
  readonly headers: Readonly<Record<string, string>>;
}

/** The created event, or the one that exists instead of it. */
export interface Creation {
  readonly id: string;
  readonly duplicate: boolean;
}

const RETRY_AFTER_SECONDS = 1;

/** The process closes before a message is committed. */
export function closing(): GatewayError {
  return new GatewayError('closing', { retryAfterSeconds: RETRY_AFTER_SECONDS });
}

/** Called once; with `creationOf` each event of the message if there was a commit. */
export type Settle = (outcome: Outcome, creationOf?: (event: ReadyEvent) => Creation) => void;

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
  /** The work already counted toward the project's pace. */
  counted = 0;
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
    public events: readonly ReadyEvent[],
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

  settle(...given: Parameters<Settle>): void {
    this.settled(...given);
  }
}
