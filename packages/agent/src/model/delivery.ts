import type { EventRef, NewEvent } from '@gateway/store/events';

/** An event that is ready to be committed, before it is routed. */
export interface ReadyEvent extends Omit<NewEvent, 'status' | 'outcome' | 'headers'> {
  readonly headers: Readonly<Record<string, string>>;
}

/** A delivery that this agent has claimed and whose attempt is not recorded yet. */
export interface HeldDelivery extends EventRef {
  readonly eventId: string;
  readonly endpointId: string;
  /** Attempts recorded before this one. */
  readonly attempts: number;
  readonly eventType: string;
  /** Null: its event was created over the API. */
  readonly sourceId: string | null;
  /** Of the previous attempt, if that was traced. */
  readonly traceparent: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The agent id under which it was claimed. */
  readonly agentId: number;
  /** When this agent took it on, by the monotonic clock. */
  heldAtMs?: number;
}

/** Why a request got no response, or not a good one. */
export type FailureClass =
  'dns' | 'connect' | 'refused_address' | 'proxy' | 'tls' | 'timeout' | 'reset' | 'protocol' | 'status' | 'unsendable';

/** A circuit breaker that has opened. */
export interface Trip {
  readonly projectId: string;
  readonly endpointId: string;
  /** It was closed before; false: its probe failed. */
  readonly isFirst: boolean;
  readonly failures: number;
  readonly error: string;
}

/** The queue of an endpoint, as far as backpressure looks at it. */
export interface QueueState {
  readonly projectId: string;
  readonly endpointId: string;
  readonly waiting: number;
  readonly isUnproven: boolean;
  probe: 'none' | 'asked' | 'granted';
  isSlow(nowMs: number): boolean;
}

/** What this agent holds, by endpoint. */
export interface EndpointQueues {
  readonly queues: ReadonlyMap<string, QueueState>;
  /** The endpoint may be sent to again, or no longer. */
  wake(endpointId: string): void;
}
