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
    get hasRoom() {
      return inFlight.room > 0;
    },
    waitForRoom: (patienceMs) => inFlight.waitForRoom(patienceMs),
    isBusy: (projectId) => inFlight.isBusy(projectId),
    onRecorded: (listener) => inFlight.onRecorded(listener),
    plan(hasRoom) {
      if (!configCache.isCurrent()) void configCache.refresh();
      // A batch is routed as a whole even if only part of it fits: splitting would make tiny
      // batches.
      const plan = planner.plan(
        lease.agentId,
        hasRoom ? Math.max(inFlight.room, config.ingest.batch_size) : 0,
      );
      return {
        agentId: plan.agentId,
        deliveries: plan.deliveries,
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
