import { type EventRouter, routeInCommit } from '@gateway/ingest/routing/event-router';
import type { AgentContext } from '../config/agent-context.js';
import type { DeliveriesInFlight } from '../delivery/in-flight.js';
import type { DeliveryPlanner } from './plan-deliveries.js';

interface CommitRouterOptions extends Pick<AgentContext, 'config' | 'configCache' | 'lease'> {
  readonly inFlight: DeliveriesInFlight;
  readonly planner: DeliveryPlanner;
}

/** Only while the configuration is current and there is capacity. */
export function commitRouter({
  config,
  configCache,
  lease,
  inFlight,
  planner,
}: CommitRouterOptions): EventRouter {
  return {
    isBusy: (projectId) => inFlight.isBusy(projectId),
    onRecorded: (listener) => inFlight.onRecorded(listener),
    plan(mayRoute) {
      if (!configCache.isCurrent()) void configCache.refresh();
      // A batch is routed as a whole even if only part of it fits: splitting would make tiny
      // batches.
      const { room } = inFlight;
      const plan = planner.plan(
        lease.agentId,
        mayRoute && room > 0 ? Math.max(room, config.ingest.batch_size) : 0,
      );
      return {
        agentId: plan.agentId,
        deliveries: plan.deliveries,
        routes: plan.room > 0,
        route(event) {
          const routed =
            plan.room > 0 ? routeInCommit({ configCache, matcher: planner }, event) : null;
          if (routed) planner.add(plan, event, routed.targets);
          return routed?.outcome ?? null;
        },
        handOver: (isNew) => planner.handOver(plan, ({ eventId }) => isNew(eventId)),
        drop: () => planner.drop(plan),
      };
    },
  };
}
