import type { Target } from '@gateway/core/routing';
import { WAIT_REASONS } from '@gateway/store/deliveries';
import type { NewEventDelivery } from '@gateway/store/events';
import {
  firstDelivery,
  firstState,
  type DeliveryState,
  type PlannedEvent,
} from '@gateway/ingest/routing/first-delivery';
import { Matcher } from '@gateway/ingest/routing/matcher';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { DueTimes } from '../delivery/due-times.js';
import type { DeliveriesInFlight } from '../delivery/in-flight.js';
import type { Gates } from '../flow-control/gates.js';
import type { InFlightDelivery } from '../model/delivery.js';
import type { TokenBuckets } from '@gateway/core/process';

interface DeliveryPlannerOptions {
  readonly inFlight: Pick<DeliveriesInFlight, 'add' | 'reserve' | 'cancel'>;
  readonly gates: Pick<Gates, 'ask' | 'postpone'>;
  readonly dueTimes: Pick<DueTimes, 'add'>;
  readonly routingPace: TokenBuckets;
  /** In the commit, rather than leaving first attempts to other agents. */
  readonly claimsFirstAttempts: boolean;
}

interface DeliveryPlan {
  readonly agentId: number;
  /** Deliveries that this agent may still claim with the commit. */
  room: number;
  readonly deliveries: NewEventDelivery[];
  readonly claimed: InFlightDelivery[];
}

/** Reserves the capacity of deliveries until the commit. */
export class DeliveryPlanner extends Matcher {
  constructor(private readonly options: DeliveryPlannerOptions) {
    super(options.routingPace);
  }

  plan(agentId: number, room: number): DeliveryPlan {
    return { agentId, room, deliveries: [], claimed: [] };
  }

  add(plan: DeliveryPlan, event: PlannedEvent, targets: readonly Target<Endpoint>[]): void {
    let body: Buffer | undefined;
    for (const { endpoint, subscriptionId } of targets) {
      const delivery = firstDelivery(
        event,
        { endpoint, subscriptionId },
        this.#firstState(endpoint, plan.room > 0),
      );
      plan.deliveries.push(delivery);
      if (delivery.status !== 'processing') continue;
      plan.room--;
      const claimed: InFlightDelivery = {
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
      this.options.inFlight.reserve(claimed);
      plan.claimed.push(claimed);
    }
  }

  /**
   * After the commit: queues the new deliveries that this agent sends, and frees the capacity of
   * the others.
   */
  handOver(
    { deliveries, claimed }: DeliveryPlan,
    isNew: (delivery: InFlightDelivery) => boolean,
  ): void {
    const { inFlight, dueTimes } = this.options;
    for (const { status, projectId, dueInMs } of deliveries)
      if (status === 'scheduled') dueTimes.add(projectId, dueInMs);
    const ours = claimed.filter(isNew);
    if (ours.length < claimed.length)
      inFlight.cancel(claimed.filter((delivery) => !isNew(delivery)));
    if (ours.length > 0) inFlight.add(ours);
  }

  /** For a plan that was not committed. */
  drop({ claimed }: DeliveryPlan): void {
    this.options.inFlight.cancel(claimed);
  }

  #firstState(endpoint: Endpoint, hasRoom: boolean): DeliveryState {
    const state = firstState(endpoint);
    if (endpoint.unreadable || endpoint.status !== 'active') return state;
    const { gates, claimsFirstAttempts } = this.options;
    const refusal = gates.ask('commit', endpoint);
    const wait = refusal?.answer === 'postpone' && gates.postpone(endpoint, refusal, 1);
    if (typeof wait === 'object') {
      const dueInMs = wait.dueInMs + Math.round(Math.random() * wait.spreadMs);
      return { status: 'scheduled', dueInMs, reason: WAIT_REASONS[wait.reason] };
    }
    return hasRoom && claimsFirstAttempts && !refusal ? { ...state, status: 'processing' } : state;
  }
}
