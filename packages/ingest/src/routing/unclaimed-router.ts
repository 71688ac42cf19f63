import { mayChange } from '@gateway/core/routing';
import type { NewEventDelivery } from '@gateway/store/events';
import { type EventRouter, routeInCommit } from './event-router.js';
import type { ConfigCache } from './config-cache.js';
import { firstDelivery, firstState } from './first-delivery.js';
import { orderKeysOf } from './order-key.js';
import type { Matcher } from './matcher.js';

interface UnclaimedRouterOptions {
  readonly configCache: ConfigCache;
  readonly matcher: Matcher;
  readonly due: (events: readonly Pick<NewEventDelivery, 'projectId' | 'eventId'>[]) => void;
}

/**
 * For a process that sends no deliveries itself. Events are routed in the transaction that stores
 * them, and agents then claim their deliveries.
 */
export function unclaimedRouter({
  configCache,
  matcher,
  due,
}: UnclaimedRouterOptions): EventRouter {
  return {
    isBusy: () => false,
    isOrdered: (projectId) => configCache.projects.get(projectId)?.isOrdered === true,
    mustWait(projectId) {
      if (configCache.isCurrent(projectId)) return false;
      void configCache.refresh();
      return true;
    },
    onRecorded: () => undefined,
    plan(mayRoute) {
      if (!configCache.isCurrent()) void configCache.refresh();
      const deliveries: NewEventDelivery[] = [];
      return {
        agentId: 0,
        deliveries,
        routes: mayRoute,
        route(event) {
          const project = configCache.projects.get(event.projectId);
          const routed =
            mayRoute || project?.isOrdered ? routeInCommit(configCache, matcher, event) : null;
          // Another server may have just added a subscription, so agents route the event again.
          if (!routed || mayChange(routed.outcome)) return null;
          const keys = project?.isOrdered ? orderKeysOf(project, event) : undefined;
          for (const target of routed.targets) {
            const order = keys?.(target.endpoint, target.subscriptionId);
            deliveries.push(firstDelivery(event, target, firstState(target.endpoint), order));
          }
          return routed.outcome;
        },
        handOver(isNew, turns) {
          const events = new Map<string, NewEventDelivery>();
          for (const delivery of deliveries)
            if (
              delivery.status === 'scheduled' &&
              delivery.dueInMs === 0 &&
              (!delivery.orderKey || turns?.has(delivery.id))
            )
              events.set(delivery.eventId, delivery);
          const made = [...events.values()].filter(({ eventId }) => isNew(eventId));
          if (made.length > 0) due(made);
        },
        turned(turns) {
          due(turns.flatMap(({ projectId, eventId }) => (eventId ? [{ projectId, eventId }] : [])));
        },
        drop: () => undefined,
      };
    },
  };
}
