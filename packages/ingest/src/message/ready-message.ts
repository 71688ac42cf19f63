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

/** A message with everything that must be committed before it may be acknowledged. */
export interface ReadyMessage {
  readonly projectId: string;
  /** Usually one event; a function may make several. Empty if the message is quarantined. */
  readonly events: readonly ReadyEvent[];
  readonly quarantined: QuarantinedMessage | null;
  /** The message itself, if its source keeps messages. */
  readonly kept?: KeptMessage | null;
  /** The work already counted toward the project's pace. */
  readonly counted?: number;
  /** Whether the message's timestamp is impossible, so its arrival dates it. */
  readonly isUndated?: boolean;
  reject(rejection: Rejection): void;
  /**
   * Ends the message with the error of its commit. The commit of a message with this method is not
   * retried, because its caller waits.
   */
  failed?(error: unknown): void;
  /**
   * Dates an undated message by its first arrival, or keeps its own time if `arrivedAtMs` is
   * undefined.
   */
  date?(arrivedAtMs: number | undefined): void;
  /** Resolves an id collision: keeps only these events, under new ids that include the digest. */
  distinguish(ids: ReadonlySet<string>): void;
  /** Called once; with `creationOf` each event of the message if there was a commit. */
  settle(outcome: Outcome, creationOf?: (event: ReadyEvent) => Creation): void;
}
