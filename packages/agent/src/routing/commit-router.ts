import { mayChange, routingOutcomes } from '@gateway/core/routing';
import type { EventRouter } from '@gateway/ingest/commit/event-router';
import type { AgentContext } from '../config/agent-context.js';
import type { InFlight } from '../delivery/in-flight.js';
import type { DeliveryPlanner } from './plan-deliveries.js';

export interface CommitRouterOptions extends Pick<AgentContext, 'config' | 'configCache' | 'lease'> {
  readonly inFlight: InFlight;
  readonly planner: DeliveryPlanner;
}

/** Routes events in their commit by the configuration in memory, as long as it is current and this agent has room for their deliveries. */
export function commitRouter({ config, configCache, lease, inFlight, planner }: CommitRouterOptions): EventRouter {
  return {
    get hasRoom() {
      return inFlight.room > 0;
    },
    waitForRoom: (patienceMs) => inFlight.waitForRoom(patienceMs),
    isBusy: (projectId) => inFlight.isBusy(projectId),
    onRecorded: (listener) => inFlight.onRecorded(listener),
    plan(hasRoom) {
      if (!configCache.isCurrent()) void configCache.refresh();
      // A batch that has begun to fit is routed as a whole: cutting it to the room that is left would make tiny batches under load.
      const plan = planner.plan(lease.agentId, hasRoom ? Math.max(inFlight.room, config.ingest.batch_size) : 0);
      return {
        agentId: plan.agentId,
        deliveries: plan.deliveries,
        route(event) {
          if (!(plan.room > 0 && configCache.isCurrent(event.projectId))) return null;
          const routed = planner.route(configCache.projects.get(event.projectId), event);
          // Failures are left to the queues, which make sure that the configuration is up to date before they decide.
          if (!routed || (routingOutcomes[routed.outcome].status === 'failed' && mayChange(routed.outcome))) return null;
          planner.add(plan, event, routed.targets);
          return routed.outcome;
        },
        handOver: (isNew) => planner.handOver(plan, ({ eventId }) => isNew(eventId)),
        drop: () => planner.drop(plan),
      };
    },
  };
}
