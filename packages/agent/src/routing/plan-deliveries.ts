import { eventDeliveryId, FilterBudget } from '@gateway/core/events';
import { parseInSteps } from '@gateway/core/json';
import { needsMatching, route, type RoutableEvent, type Route, type Target } from '@gateway/core/routing';
import { WAIT_REASONS } from '@gateway/store/deliveries';
import type { NewEventDelivery } from '@gateway/store/events';
import type { Endpoint, Project } from '../config/project.js';
import type { DueTimes } from '../delivery/due-times.js';
import type { InFlight } from '../delivery/in-flight.js';
import { inactiveReason } from '../delivery/release-deliveries.js';
import type { Backpressure } from '../flow-control/backpressure.js';
import type { ReadyEvent } from '@gateway/ingest/message/ready-message';
import type { HeldDelivery } from '../model/delivery.js';
import type { ProjectPace } from '@gateway/core/process';

export interface DeliveryPlannerOptions {
  readonly inFlight: Pick<InFlight, 'hold' | 'hasRoomFor' | 'reserve' | 'cancel'>;
  readonly backpressure: Pick<Backpressure, 'newWait'>;
  readonly dueTimes: Pick<DueTimes, 'add'>;
  readonly routingPace: ProjectPace;
  /** First attempts are this agent's work; false leaves deliveries to be claimed. */
  readonly claimsFirstAttempts: boolean;
}

/** Comparisons of filters that take as long as one delivery more of an event: most of it in Postgres. */
const WORK_PER_DELIVERY = 1_000;
/** Characters of a body that are parsed at once: it takes a few milliseconds, for which a batch of other events waits. */
export const BODY_AT_ONCE_MAX = 64 * 1024;
/** Thrown in place of a larger one. */
const LARGE_BODY = new Error('the body is too large to be parsed at once');
const refuse = (): never => {
  throw LARGE_BODY;
};

/** True when a subscription decides whose filter this agent cannot read. */
const isUnreadable = (project: Project, event: RoutableEvent) => project.unreadableFilter !== undefined && needsMatching(event);

type PlannedEvent = Pick<ReadyEvent, 'projectId' | 'id' | 'occurredAtMs' | 'eventType' | 'sourceId' | 'headers' | 'data'>;

export interface DeliveryPlan {
  readonly agentId: number;
  /** Deliveries that this agent may still claim with the commit, as far as their projects and endpoints have room. */
  room: number;
  readonly deliveries: NewEventDelivery[];
  readonly held: HeldDelivery[];
}

/** Plans the deliveries of routed events with the room for them, and hands them over once they are committed, or else drops them. */
export class DeliveryPlanner {
  constructor(private readonly options: DeliveryPlannerOptions) {}

  /** Projects that are over their share of routing now. */
  get postponed(): readonly string[] {
    return this.options.routingPace.over;
  }

  /**
   * Routes an event; undefined when it is to stay pending, and to be routed later: its project is over its share, a filter cannot be read, or asks for its body,
   * which is too large to be parsed at once.
   */
  route(project: Project | undefined, event: RoutableEvent): Route<Endpoint> | undefined {
    if (!project) return route(project, event);
    if (isUnreadable(project, event)) return undefined;
    if (this.options.routingPace.isOver(project.id)) return undefined;
    const budget = new FilterBudget();
    try {
      const routed = route(project, event, budget, event.data.length > BODY_AT_ONCE_MAX ? refuse : undefined);
      this.#count(project, budget, routed);
      return routed;
    } catch (error) {
      if (error === LARGE_BODY) return undefined;
      throw error;
    }
  }

  /** The same, but a large body is parsed in steps. */
  *routeInSteps(project: Project | undefined, event: RoutableEvent): Generator<void, Route<Endpoint> | undefined> {
    const routed = this.route(project, event);
    const { routingPace } = this.options;
    if (routed || !project || routingPace.isOver(project.id) || isUnreadable(project, event)) return routed;
    // Before the work, so that no other event of the project begins meanwhile.
    routingPace.add(project.id, event.data.length);
    const { value, sizes } = yield* parseInSteps(event.data);
    const budget = new FilterBudget(undefined, sizes);
    const late = route(project, event, budget, () => value);
    this.#count(project, budget, late);
    return late;
  }

  #count({ id }: Project, { cost }: FilterBudget, { targets }: Route<Endpoint>): void {
    this.options.routingPace.add(id, cost + Math.max(0, targets.length - 1) * WORK_PER_DELIVERY);
  }

  plan(agentId: number, room: number): DeliveryPlan {
    return { agentId, room, deliveries: [], held: [] };
  }

  add(plan: DeliveryPlan, event: PlannedEvent, targets: readonly Target<Endpoint>[]): void {
    let body: Buffer | undefined;
    for (const { endpoint, subscriptionId } of targets) {
      const delivery: NewEventDelivery = {
        projectId: event.projectId,
        id: eventDeliveryId(event.id, endpoint.id, subscriptionId),
        occurredAtMs: event.occurredAtMs,
        eventId: event.id,
        endpointId: endpoint.id,
        subscriptionId,
        eventType: event.eventType,
        sourceId: event.sourceId,
        ...this.#firstState(endpoint, plan.room > 0),
      };
      plan.deliveries.push(delivery);
      if (delivery.status !== 'processing') continue;
      plan.room--;
      const held: HeldDelivery = {
        projectId: delivery.projectId,
        id: delivery.id,
        occurredAtMs: delivery.occurredAtMs,
        eventId: delivery.eventId,
        endpointId: delivery.endpointId,
        subscriptionId,
        isTransformed: false,
        attempts: 0,
        eventType: event.eventType,
        sourceId: event.sourceId,
        traceparent: null,
        headers: event.headers,
        body: (body ??= Buffer.from(event.data)),
        agentId: plan.agentId,
      };
      this.options.inFlight.reserve(held);
      plan.held.push(held);
    }
  }

  /** Takes on the deliveries of a committed plan that this agent sends, as far as they are new; the others are due later. */
  handOver({ deliveries, held }: DeliveryPlan, isNew: (delivery: HeldDelivery) => boolean): void {
    const { inFlight, dueTimes } = this.options;
    for (const { status, projectId, dueInMs } of deliveries) if (status === 'scheduled') dueTimes.add(projectId, dueInMs);
    const ours = held.filter(isNew);
    if (ours.length < held.length) inFlight.cancel(held.filter((delivery) => !isNew(delivery)));
    if (ours.length > 0) inFlight.hold(ours);
  }

  /** Frees the room of a plan that was not committed. */
  drop({ held }: DeliveryPlan): void {
    this.options.inFlight.cancel(held);
  }

  /** Claimed by this agent, left to be claimed, or discarded, depending on the endpoint and on the room. */
  #firstState(endpoint: Endpoint, hasRoom: boolean): Pick<NewEventDelivery, 'status' | 'dueInMs' | 'reason'> {
    if (endpoint.unreadable) return { status: 'scheduled', dueInMs: 0, reason: null };
    switch (endpoint.status) {
      case 'inactive':
        return { status: 'discarded', dueInMs: 0, reason: inactiveReason(endpoint) };
      case 'paused':
        return { status: 'scheduled', dueInMs: Infinity, reason: null };
      case 'active': {
        const { inFlight, backpressure, claimsFirstAttempts } = this.options;
        const wait = backpressure.newWait(endpoint);
        if (wait) {
          const dueInMs = wait.dueInMs + Math.round(Math.random() * wait.spreadMs);
          return { status: 'scheduled', dueInMs, reason: WAIT_REASONS[wait.reason] };
        }
        const isHeld = hasRoom && claimsFirstAttempts && inFlight.hasRoomFor({ projectId: endpoint.projectId, endpointId: endpoint.id });
        return { status: isHeld ? 'processing' : 'scheduled', dueInMs: 0, reason: null };
      }
    }
  }
}
