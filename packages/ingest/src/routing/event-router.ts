import {
  type EventRoute,
  mayChange,
  type RoutingOutcome,
  routingOutcomes,
} from '@gateway/core/routing';
import type { NewEvent, NewEventDelivery } from '@gateway/store/events';
import type { KeyTurn } from '@gateway/store/ordering';
import type { ConfigCache } from './config-cache.js';
import type { Matcher } from './matcher.js';
import type { Endpoint } from './project.js';

export interface EventRouter {
  /**
   * The project should deliver its committed events before committing more, or there is no room for
   * deliveries at all.
   */
  isBusy(projectId: string): boolean;
  /** Its messages keep their order: one commit at a time. */
  isOrdered(projectId: string): boolean;
  /**
   * The events of an ordered project cannot be routed now. They wait, because events routed later
   * would come behind newer ones.
   */
  mustWait(projectId: string): boolean;
  /** A single listener, called when deliveries have ended. */
  onRecorded(listener: () => void): void;
  /** @param mayRoute otherwise every event is left pending, as without room for deliveries */
  plan(mayRoute: boolean): CommitPlan;
}

/** The deliveries of one commit. Must end with `handOver` or `drop`. */
export interface CommitPlan {
  readonly agentId: number;
  readonly deliveries: readonly NewEventDelivery[];
  /** False if every event is left pending. */
  readonly routes: boolean;
  /** Null leaves the event pending, to be signalled after the commit. */
  route(event: NewEvent): RoutingOutcome | null;
  /**
   * Takes over the deliveries of new events after the commit.
   *
   * @param turns the ordered deliveries that do not wait for others
   */
  handOver(isNew: (eventId: string) => boolean, turns?: ReadonlySet<string> | null): void;
  /** For ordered deliveries that became due after the commit. */
  turned(turns: readonly KeyTurn[]): void;
  /** Frees the capacity of the deliveries after a failed commit. */
  drop(): void;
}

/**
 * Null leaves the event pending: the configuration may be outdated, the project may be over its
 * share, or routing failed, in which case the queues refresh the configuration and try again.
 */
export function routeInCommit(
  configCache: Pick<ConfigCache, 'isCurrent' | 'projects'>,
  matcher: Pick<Matcher, 'route'>,
  event: NewEvent,
): EventRoute<Endpoint> | null {
  if (!configCache.isCurrent(event.projectId)) return null;
  const routed = matcher.route(configCache.projects.get(event.projectId), event);
  return !routed ||
    (routingOutcomes[routed.outcome].status === 'failed' && mayChange(routed.outcome))
    ? null
    : routed;
}
