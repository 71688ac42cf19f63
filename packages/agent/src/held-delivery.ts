import type { EventRef } from '@gateway/store';

/** A delivery that this agent has claimed and not yet recorded. */
export interface HeldDelivery extends EventRef {
  readonly eventId: string;
  readonly endpointId: string;
  /** Attempts recorded before this one. */
  readonly attempts: number;
  readonly eventType: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The agent id under which it was claimed. */
  readonly agentId: number;
}
