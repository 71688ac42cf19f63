import type { SpanAttributes } from '@gateway/core/tracing';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { Attempt } from './delivery.js';

/** Where deliveries go: a kind of target with its protocol, such as HTTP. */
export interface Destination {
  /** Once. Never rejects. */
  send(
    attempt: Pick<Attempt, 'endpoint' | 'delivery' | 'trace' | 'message'>,
    signal: SendSignal,
  ): Promise<Attempted | NotSent>;
  attributes(endpoint: Endpoint, code: number | null): SpanAttributes<'meta_event_delivery'>;
  /** The shortage of this agent that prevented sending lately, with its fix. */
  readonly shortage: Shortage | undefined;
  close(): Promise<void>;
}

/** Aborted when this agent may not send any more. Read after each preparation, before sending. */
export type SendSignal = Pick<AbortSignal, 'aborted'>;

export interface Attempted {
  /**
   * `retry`: the target may take the delivery later. `failed`: it never will. `gone`: it takes no
   * deliveries any more, and its endpoint is deactivated.
   */
  readonly outcome: 'delivered' | 'retry' | 'failed' | 'gone';
  /** The delay that the target asks for before a retry. */
  readonly afterSeconds: number | null;
  /** Whether the target asks for fewer requests, so that all its deliveries wait. */
  readonly isOverloaded: boolean;
  /**
   * Whether a retry at once may succeed, because a connection that had been idle was lost. Others
   * may be lost too, so this is no reason for a second one.
   */
  readonly mayRetryAtOnce: boolean;
  readonly target: string;
  /** The answer of the target as a number: of HTTP the status. Null if there was none. */
  readonly code: number | null;
  readonly failure: FailureClass | null;
  /** A sentence about the failure, or a remark on an answer that counts. */
  readonly detail: string | null;
  /** The answer. Its headers are null if there was none. */
  readonly headers: Readonly<Record<string, string>> | null;
  readonly body: string;
  /** Whether the target works. Null if it was not reached for reasons that are not its own. */
  readonly isUp: boolean | null;
  readonly sentAtMs: number;
  readonly durationMs: number;
}

/** Nothing was sent, for no fault of the target: no attempt is used. */
export interface NotSent {
  readonly outcome: 'unsent';
  /**
   * `lookup`: the project has too many DNS lookups running. `shortage`: this agent has run short of
   * something. `unreadable`: it cannot read the endpoint's settings, but another agent may.
   * `function`: the subscription's function has no result yet. `dropped`: it has none to send.
   */
  readonly reason: 'lookup' | 'shortage' | 'unreadable' | 'aborted' | 'function' | 'dropped';
  readonly detail: string;
}

export interface Shortage {
  readonly reason: string;
  readonly since: Date;
}

export type FailureClass =
  | 'dns'
  | 'connect'
  | 'refused_address'
  | 'proxy'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'status'
  | 'unsendable'
  | 'function';
