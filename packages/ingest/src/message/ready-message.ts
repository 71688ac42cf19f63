import type { Outcome } from '@gateway/plugin';
import type { KeptMessage, NewEvent } from '@gateway/store/events';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { Rejection } from './reject-codes.js';

/** An event ready to be committed, not routed yet. */
export interface ReadyEvent extends Omit<NewEvent, 'status' | 'outcome' | 'headers'> {
  readonly headers: Readonly<Record<string, string>>;
}

/** A message with everything to commit before it may be acknowledged. */
export interface ReadyMessage {
  readonly projectId: string;
  /** Usually one; a function may make several. Empty if the message is quarantined. */
  readonly events: readonly ReadyEvent[];
  readonly quarantined: QuarantinedMessage | null;
  /** The message itself, if its source keeps messages. */
  readonly kept?: KeptMessage | null;
  /** Work already counted in the pace of its project. */
  readonly counted?: number;
  /** Whether the timestamp is impossible. */
  readonly isUndated?: boolean;
  reject(rejection: Rejection): void;
  /** Ends the message with the error of its commit, which is not repeated: its caller waits. */
  failed?(error: unknown): void;
  /** Dates an undated message by its arrival; undefined keeps its own time. */
  date?(arrivedAtMs: number | undefined): void;
  /** Resolves an id collision: keeps these events only, under ids that include the digest. */
  distinguish(ids: ReadonlySet<string>): void;
  /**
   * Called once.
   *
   * @param isNew whether the commit created this event of the message; undefined without a commit
   */
  settle(outcome: Outcome, isNew?: (event: Pick<ReadyEvent, 'id'>) => boolean): void;
}
