import type { Log } from '@gateway/core/logging';
import {
  readPending,
  recordRoutes,
  type EventRef,
  type PendingEvent,
  type RoutedEvent,
  type NewEventDelivery,
} from '@gateway/store/events';
import type { Database } from '@gateway/store/postgres';
import { addDeliveries, routable } from '../commit/event-writer.js';
import type { Scheduler } from '../delivery/scheduler.js';
import type { HeldDelivery } from '../model/delivery.js';
import type { Measure } from '../telemetry/measure.js';
import type { ConfigCache } from '../config/config-cache.js';
import { routingOutcomes } from '../model/routing.js';
import { route } from './route.js';
import type { Routing } from '../telemetry/trace-routing.js';
import type { Tracing } from '../telemetry/tracing.js';

/** Routes events that were accepted without a route: what both queues and the reconciler call. */
export interface PendingRouter {
  /** Reads the events of these refs that are still pending. */
  read(refs: readonly EventRef[]): Promise<PendingEvent[]>;
  /** Commits the routes of these events and takes their deliveries on. */
  route(events: readonly PendingEvent[], routing?: Routing): Promise<void>;
}

export interface PendingRouterOptions {
  readonly database: Database;
  readonly store: ConfigCache;
  readonly scheduler: Scheduler;
  readonly log: Log;
  readonly agentId: () => number;
  readonly claimsFirstAttempts: boolean;
  /** Deliveries of a project were left to be claimed, due after a while. */
  readonly onScheduled: (projectId: string, dueInMs: number) => void;
  readonly measure?: Measure | undefined;
  readonly tracing?: Pick<Tracing, 'routing'> | undefined;
}

const RECONCILED: Routing = { by: 'reconciler', since: new Map() };

export function pendingRouter(options: PendingRouterOptions): PendingRouter {
  const { database, store, scheduler, agentId: currentAgent, measure, tracing } = options;

  async function routeAll(pending: readonly PendingEvent[], routing: Routing): Promise<void> {
    const agentId = currentAgent();
    const events: RoutedEvent[] = [];
    const deliveries: NewEventDelivery[] = [];
    const held: HeldDelivery[] = [];
    let room = scheduler.room;
    const routingSinceMs = measure ? performance.now() : 0;
    const routes = await routesOf(pending, store);
    for (const { event, headers, outcome, targets } of routes) {
      events.push({
        projectId: event.projectId,
        id: event.id,
        occurredAtMs: event.occurredAtMs,
        status: routingOutcomes[outcome].status,
        outcome,
      });
      room = addDeliveries({ deliveries, held }, { ...event, headers }, targets, { ...options, agentId, room });
    }
    const committingSinceMs = measure ? performance.now() : 0;
    const added = await recordRoutes(database.pool, { events, deliveries, agentId });
    if (measure) {
      measure.step('route', routingSinceMs, committingSinceMs);
      measure.batch('route', events.length);
      measure.step('commit', committingSinceMs);
      measure.batch('commit', events.length);
    }
    for (const delivery of deliveries) if (delivery.status === 'scheduled') options.onScheduled(delivery.projectId, delivery.dueInMs);
    const mine = held.filter((delivery) => added.has(delivery.id));
    tracing?.routing.routed(routes, { deliveries, added }, routing);
    if (mine.length > 0) scheduler.push(mine);
  }

  return {
    read: (refs) => readPending(database.pool, refs),
    async route(pending, routing = RECONCILED) {
      if (pending.length === 0) return;
      try {
        await routeAll(pending, routing);
      } catch (error) {
        tracing?.routing.failed(pending, routing, error);
        throw error;
      }
    },
  };
}

/**
 * The routes of these events, each once, in the order of their ids: routers that have the same events lock them in one order. What would go nowhere is looked at
 * again when the store is known to be fresh, for its endpoint may be as new as the event.
 */
async function routesOf(pending: readonly PendingEvent[], store: ConfigCache) {
  const routeOne = (event: PendingEvent) => {
    const headers = JSON.parse(event.headers) as Record<string, string>;
    return { event, headers, ...route(store.projects.get(event.projectId), routable({ ...event, headers })) };
  };
  // Two signals of one event may have come in one pull.
  const events = new Map(pending.map((event) => [event.id, event]));
  const routes = [...events.values()].sort((a, b) => (a.id < b.id ? -1 : 1)).map(routeOne);
  if (routes.every(({ outcome }) => outcome === 'routed')) return routes;
  await store.refresh();
  return routes.map((routed) => (routed.outcome === 'routed' ? routed : routeOne(routed.event)));
}
