import { mayChange } from '@gateway/core/routing';
import type { NewEventDelivery } from '@gateway/store/events';
import { type EventRouter, routeInCommit } from './event-router.js';
import type { ConfigCache } from './config-cache.js';
import { firstDelivery, firstState } from './first-delivery.js';
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
    onRecorded: () => undefined,
    plan(mayRoute) {
      if (!configCache.isCurrent()) void configCache.refresh();
      const deliveries: NewEventDelivery[] = [];
      return {
        agentId: 0,
        deliveries,
        routes: mayRoute,
        route(event) {
          const routed = mayRoute ? routeInCommit(configCache, matcher, event) : null;
          // Another server may have just added a subscription, so agents route the event again.
          if (!routed || mayChange(routed.outcome)) return null;
          for (const target of routed.targets)
            deliveries.push(firstDelivery(event, target, firstState(target.endpoint)));
          return routed.outcome;
        },
        handOver(isNew) {
          const events = new Map<string, NewEventDelivery>();
          for (const delivery of deliveries)
            if (delivery.status === 'scheduled' && delivery.dueInMs === 0)
              events.set(delivery.eventId, delivery);
          const made = [...events.values()].filter(({ eventId }) => isNew(eventId));
          if (made.length > 0) due(made);
        },
        drop: () => undefined,
      };
    },
  };
}
