import type { EventRef } from '@gateway/store/events';

/** A delivery that this agent has claimed and not yet recorded. */
export interface HeldDelivery extends EventRef {
  readonly eventId: string;
  readonly endpointId: string;
  /** Attempts recorded before this one. */
  readonly attempts: number;
  readonly eventType: string;
  /** Null: its event was created over the API. */
  readonly sourceId: string | null;
  /** Of the attempt before, when there was one and it was traced. */
  readonly traceparent: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The agent id under which it was claimed. */
  readonly agentId: number;
  /** When it came into this agent's hands, by the monotonic clock; only while that is measured. */
  heldAtMs?: number;
}
