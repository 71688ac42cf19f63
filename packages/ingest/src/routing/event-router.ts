import {
  type EventRoute,
  mayChange,
  type RoutingOutcome,
  routingOutcomes,
} from '@gateway/core/routing';
import type { NewEventDelivery } from '@gateway/store/events';
import type { ReadyEvent } from '../message/ready-message.js';
import type { ConfigCache } from './config-cache.js';
import type { Matcher } from './matcher.js';
import type { Endpoint } from './project.js';

/** Routes events in the commit that accepts them. */
export interface EventRouter {
  /** Whether the deliveries of another commit can be held. */
  readonly hasRoom: boolean;
  /** Resolves true once there is capacity; false if no delivery ended for `patienceMs`. */
  waitForRoom(patienceMs: number): Promise<boolean>;
  /** Whether the project should deliver its events before more are committed. */
  isBusy(projectId: string): boolean;
  /** Sets the single listener, called when deliveries have ended. */
  onRecorded(listener: () => void): void;
  /**
   * Starts a commit.
   *
   * @param hasRoom false leaves every event pending
   */
  plan(hasRoom: boolean): CommitPlan;
}

/** The deliveries of one commit, which ends with `handOver` or `drop`. */
export interface CommitPlan {
  /** The agent that sends the deliveries. */
  readonly agentId: number;
  readonly deliveries: readonly NewEventDelivery[];
  /** Plans the deliveries of an event. Null leaves it pending: it is signalled after the commit. */
  route(event: ReadyEvent): RoutingOutcome | null;
  /** Takes over the deliveries of new events after the commit. */
  handOver(isNew: (eventId: string) => boolean): void;
  /** Frees the capacity of the deliveries after a failed commit. */
  drop(): void;
}

/**
 * Null leaves the event pending: the configuration may be old, or the project is over its share.
 * Failures are left to the queues, which refresh the configuration first.
 */
export function routeInCommit(
  {
    configCache,
    matcher,
  }: {
    readonly configCache: Pick<ConfigCache, 'isCurrent' | 'projects'>;
    readonly matcher: Pick<Matcher, 'route'>;
  },
  event: ReadyEvent,
): EventRoute<Endpoint> | null {
  if (!configCache.isCurrent(event.projectId)) return null;
  const routed = matcher.route(configCache.projects.get(event.projectId), event);
  return !routed ||
    (routingOutcomes[routed.outcome].status === 'failed' && mayChange(routed.outcome))
    ? null
    : routed;
}
