import type { Log } from '@gateway/core';
import {
  readPending,
  recordRoutes,
  type Database,
  type EventRef,
  type PendingEvent,
  type RoutedEvent,
  type NewEventDelivery,
} from '@gateway/store';
import { addDeliveries, routable } from './accept.js';
import type { Deliverer } from './deliver.js';
import type { HeldDelivery } from './held-delivery.js';
import type { MemoryStore } from './memory-store.js';
import { outcomes } from './outcomes.js';
import { route } from './route.js';

/** Routes events that were accepted without a route: what both queues and the reconciler call. */
export interface PendingRouter {
  /** Reads the events of these refs that are still pending. */
  read(refs: readonly EventRef[]): Promise<PendingEvent[]>;
  /** Commits the routes of these events and takes their deliveries on. */
  route(events: readonly PendingEvent[]): Promise<void>;
}

export interface PendingRouterOptions {
  readonly database: Database;
  readonly store: MemoryStore;
  readonly deliverer: Deliverer;
  readonly log: Log;
  readonly agentId: () => number;
  readonly claimsFirstAttempts: boolean;
  /** Deliveries of a project were left to be claimed, due after a while. */
  readonly onScheduled: (projectId: string, dueInMs: number) => void;
}

export function pendingRouter(options: PendingRouterOptions): PendingRouter {
  const { database, store, deliverer, agentId: currentAgent } = options;
  return {
    read: (refs) => readPending(database.pool, refs),
    async route(pending) {
      if (pending.length === 0) return;
      const agentId = currentAgent();
      const events: RoutedEvent[] = [];
      const deliveries: NewEventDelivery[] = [];
      const held: HeldDelivery[] = [];
      let room = deliverer.room;
      for (const { event, headers, outcome, targets } of await routesOf(pending, store)) {
        events.push({
          projectId: event.projectId,
          id: event.id,
          occurredAtMs: event.occurredAtMs,
          status: outcomes[outcome].status,
          outcome,
        });
        room = addDeliveries({ deliveries, held }, { ...event, headers }, targets, { ...options, agentId, room });
      }
      const added = await recordRoutes(database.pool, { events, deliveries, agentId });
      for (const delivery of deliveries) if (delivery.status === 'scheduled') options.onScheduled(delivery.projectId, delivery.dueInMs);
      const mine = held.filter((delivery) => added.has(delivery.id));
      if (mine.length > 0) deliverer.push(mine);
    },
  };
}

/**
 * The routes of these events, each once, in the order of their ids: routers that have the same events lock them in one order. What would go nowhere is looked at
 * again when the store is known to be fresh, for its endpoint may be as new as the event.
 */
async function routesOf(pending: readonly PendingEvent[], store: MemoryStore) {
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
