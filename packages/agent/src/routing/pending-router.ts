import { inSlices, type LoopShares } from '@gateway/core/process';
import { advanceTurns } from '@gateway/ingest/commit/advance-turns';
import { BODY_AT_ONCE_MAX } from '@gateway/ingest/routing/matcher';
import { type EventRef, type PendingEvent, readPending, recordRoutes } from '@gateway/store/events';
import type { AgentContext } from '../config/agent-context.js';
import type { DeliveriesInFlight } from '../delivery/in-flight.js';
import { mayChange, routingOutcomes } from '@gateway/core/routing';
import type { Routing } from '../telemetry/trace-routing.js';
import type { DeliveryPlanner } from './plan-deliveries.js';

interface PendingRouterOptions extends Pick<
  AgentContext,
  'database' | 'configCache' | 'log' | 'measure' | 'tracing'
> {
  readonly inFlight: Pick<DeliveriesInFlight, 'room'>;
  readonly planner: DeliveryPlanner;
  readonly loopShares: LoopShares;
}

const RECONCILED: Routing = { by: 'reconciler', since: new Map() };

/** Also commits the deliveries, and queues those claimed by this agent. */
export class PendingRouter {
  constructor(private readonly options: PendingRouterOptions) {}

  /** The project is over its share, unreadable, or not loaded yet, so its events stay pending. */
  get postponed(): readonly string[] {
    const { configCache, planner } = this.options;
    return [
      ...configCache.unloaded,
      ...configCache.unroutable,
      ...configCache.outdated,
      ...planner.postponed,
    ];
  }

  read(refs: readonly EventRef[]): Promise<PendingEvent[]> {
    return readPending(this.options.database.pool, refs);
  }

  async route(
    pending: readonly PendingEvent[],
    routing: Routing = RECONCILED,
  ): Promise<ReadonlySet<string>> {
    if (pending.length === 0) return new Set();
    try {
      return await this.#route(pending, routing);
    } catch (error) {
      this.options.tracing?.routing.failed(pending, routing, error);
      throw error;
    }
  }

  async #route(pending: readonly PendingEvent[], routing: Routing): Promise<ReadonlySet<string>> {
    const { database, inFlight, planner, measure, tracing } = this.options;
    const plan = planner.planWithin(inFlight.room);
    const routingSinceMs = measure ? performance.now() : 0;
    if (!this.options.configCache.isCurrent()) await this.options.configCache.refresh();
    const routes = await this.#routesOf(pending);
    const left = new Set(pending.map(({ id }) => id));
    for (const { event } of routes) left.delete(event.id);
    if (routes.length === 0) return left;
    const events = routes.map(({ event: { projectId, id, occurredAtMs }, outcome }) => ({
      projectId,
      id,
      occurredAtMs,
      status: routingOutcomes[outcome].status,
      outcome,
    }));
    for (const { parsed, targets } of routes) plan.add(parsed, targets);
    const committingSinceMs = measure ? performance.now() : 0;
    const { added, turns } = await recordRoutes(database.pool, {
      events,
      deliveries: plan.deliveries,
      agentId: plan.agentId,
    }).catch((error: unknown) => {
      plan.drop();
      throw error;
    });
    if (measure) {
      measure.step('route', routingSinceMs, committingSinceMs);
      measure.batch('route', events.length);
      measure.step('commit', committingSinceMs);
      measure.batch('commit', events.length);
    }
    tracing?.routing.routed(routes, { deliveries: plan.deliveries, added }, routing);
    plan.handOver((_eventId, id) => added.has(id), turns);
    if (turns) {
      const waiting = plan.deliveries.filter(({ id }) => added.has(id));
      plan.turned(await advanceTurns(this.options, waiting, turns));
    }
    return left;
  }

  /**
   * Each event once, ordered by id, the order in which all routers lock events. An event without
   * targets is routed again if the configuration was not the latest.
   */
  async #routesOf(pending: readonly PendingEvent[]) {
    const { configCache, loopShares } = this.options;
    // One pull can contain two signals of the same event.
    const events = new Map(pending.map((event) => [event.id, event]));
    const steps = this.#routeEach([...events.values()].sort((a, b) => (a.id < b.id ? -1 : 1)));
    const [only] = pending;
    // An event with a large body is pulled alone and waits for its project's share of the event
    // loop. Batches of small events do not wait.
    const isLarge = only && events.size === 1 && only.data.length > BODY_AT_ONCE_MAX;
    const routes = await (isLarge
      ? loopShares.runInSlices(only.projectId, steps)
      : inSlices(steps));
    if (!routes.some(({ outcome }) => mayChange(outcome))) return routes;
    await configCache.refresh();
    const isLate = ({ outcome, event, project }: (typeof routes)[number]) =>
      mayChange(outcome) && project !== configCache.projects.get(event.projectId);
    const late = new Set(routes.filter(isLate));
    const again = new Map(
      (await inSlices(this.#routeEach([...late].map(({ event }) => event)))).map((it) => [
        it.event,
        it,
      ]),
    );
    // Events of projects that cannot be loaded remain pending.
    const unloaded = new Set(configCache.unloaded);
    return routes
      .flatMap((routed) => (late.has(routed) ? (again.get(routed.event) ?? []) : routed))
      .filter(({ event }) => !unloaded.has(event.projectId));
  }

  *#routeEach(events: readonly PendingEvent[]) {
    const { configCache, planner } = this.options;
    const routes = [];
    for (const event of events) {
      if (!configCache.isCurrent(event.projectId)) continue;
      const project = configCache.projects.get(event.projectId);
      const parsed = { ...event, headers: JSON.parse(event.headers) as Record<string, string> };
      const routed = yield* planner.routeInSteps(project, parsed);
      if (routed) routes.push({ event, parsed, project, ...routed });
      yield;
    }
    return routes;
  }
}
