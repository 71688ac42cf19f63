import type { RoutingOutcome } from '@gateway/core/routing';
import type { NewEventDelivery } from '@gateway/store/events';
import type { ReadyEvent } from '../message/ready-message.js';

/** Routes events in the commit that accepts them. */
export interface EventRouter {
  /** Whether the deliveries of another commit may be held now. */
  readonly hasRoom: boolean;
  /** Resolves true as soon as there is room; false if no delivery ended for `patienceMs`, when waiting is of no use. */
  waitForRoom(patienceMs: number): Promise<boolean>;
  /** Whether the project should deliver what it has before more is committed for it. */
  isBusy(projectId: string): boolean;
  /** Sets the one listener, called when deliveries have ended. */
  onRecorded(listener: () => void): void;
  /** Begins a commit. @param hasRoom false leaves every event pending */
  plan(hasRoom: boolean): CommitPlan;
}

/** The deliveries of one commit. Either `handOver` or `drop` ends it. */
export interface CommitPlan {
  /** Holds the deliveries that are sent at once. */
  readonly agentId: number;
  readonly deliveries: readonly NewEventDelivery[];
  /** Plans the deliveries of an event. Null leaves it pending: it is signalled after the commit, and routed later. */
  route(event: ReadyEvent): RoutingOutcome | null;
  /** The commit succeeded: takes on the deliveries of the events that are new. */
  handOver(isNew: (eventId: string) => boolean): void;
  /** The commit failed: frees the room of the deliveries. */
  drop(): void;
}
