import type { ClaimedDelivery } from '@gateway/store/deliveries';

export interface InFlightDelivery extends ClaimedDelivery {
  /** On the monotonic clock. */
  queuedAtMs?: number;
}

export interface Trip {
  readonly projectId: string;
  readonly endpointId: string;
  /** True if a closed breaker opened; false if a failed probe reopened it. */
  readonly isFirst: boolean;
  /** Whether only deliveries of operational events are known to have failed. */
  readonly isOperational: boolean;
  readonly failures: number;
  readonly error: string;
}

export interface QueueState {
  readonly projectId: string;
  readonly endpointId: string;
  readonly waiting: number;
  readonly sending: number;
  readonly isUnproven: boolean;
  probe: 'none' | 'asked' | 'granted';
  isSlow(nowMs: number): boolean;
  hasShare(consumers: number, free: number): boolean;
}

export interface EndpointQueues {
  readonly queues: ReadonlyMap<string, QueueState>;
  /** Whether only the reserve is left, which is for endpoints that respond promptly. */
  readonly isReserve: boolean;
  hasRoomFor(of: Pick<QueueState, 'projectId' | 'endpointId'>): boolean;
  wake(endpointId: string): void;
}
