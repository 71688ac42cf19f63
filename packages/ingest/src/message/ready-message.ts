import type { Outcome } from '@gateway/plugin';
import type { KeptMessage, NewEvent } from '@gateway/store/events';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { Rejection } from './reject-codes.js';

/** An event that is ready to be committed, before it is routed. */
export interface ReadyEvent extends Omit<NewEvent, 'status' | 'outcome' | 'headers'> {
  readonly headers: Readonly<Record<string, string>>;
}

/** One message with all that has to be committed before it may be acknowledged. */
export interface ReadyMessage {
  readonly projectId: string;
  /** Usually one; a transform may make several. Empty if the message is quarantined. */
  readonly events: readonly ReadyEvent[];
  readonly quarantined: QuarantinedMessage | null;
  /** The message itself, if its source keeps messages. */
  readonly kept?: KeptMessage | null;
  /** What was counted for it in the pace of its project before it was pushed. */
  readonly counted?: number;
  /** Its own time cannot be. */
  readonly isUndated?: boolean;
  reject(rejection: Rejection): void;
  /** Its caller waits, so a commit that fails is not repeated for it: ends the message with the error. */
  failed?(error: unknown): void;
  /** Dates an undated message by its arrival; undefined leaves its own time. */
  date?(arrivedAtMs: number | undefined): void;
  /** Another message has these ids: gives its events, or itself in quarantine, ids that its digest distinguishes. Keeps only these events. */
  distinguish(ids: ReadonlySet<string>): void;
  /** Called once. @param isNew whether the commit has created this event of the message; undefined when there was no commit */
  settle(outcome: Outcome, isNew?: (event: Pick<ReadyEvent, 'id'>) => boolean): void;
}
