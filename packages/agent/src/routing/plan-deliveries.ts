import { eventDeliveryId } from '@gateway/core/events';
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

type ClaimedWithEvent = InFlightDelivery & NewEventDelivery;

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
      const state = this.#firstState(endpoint, plan.room > 0);
      if (state) {
        plan.deliveries.push(firstDelivery(event, { endpoint, subscriptionId }, state));
        continue;
      }
      plan.room--;
      // One object for the commit and for sending: most deliveries are claimed with their event.
      const claimed: ClaimedWithEvent = {
        projectId: event.projectId,
        id: eventDeliveryId(event.id, endpoint.id, subscriptionId),
        occurredAtMs: event.occurredAtMs,
        eventId: event.id,
        endpointId: endpoint.id,
        subscriptionId,
        eventType: event.eventType,
        sourceId: event.sourceId,
        status: 'processing',
        dueInMs: 0,
        reason: null,
        isTransformed: false,
        attempts: 0,
        traceparent: null,
        headers: event.headers,
        body: (body ??= Buffer.from(event.data)),
        agentId: plan.agentId,
        queuedAtMs: 0,
      };
      this.options.inFlight.reserve(claimed);
      plan.deliveries.push(claimed);
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

  drop({ claimed }: DeliveryPlan): void {
    this.options.inFlight.cancel(claimed);
  }

  /** Undefined if this agent claims the delivery with the commit. */
  #firstState(endpoint: Endpoint, hasRoom: boolean): DeliveryState | undefined {
    const state = firstState(endpoint);
    if (endpoint.unreadable || endpoint.status !== 'active') return state;
    const { gates, claimsFirstAttempts } = this.options;
    const refusal = gates.ask('commit', endpoint);
    const wait = refusal?.answer === 'postpone' && gates.postpone(endpoint, refusal, 1);
    if (typeof wait === 'object') {
      const dueInMs = wait.dueInMs + Math.round(Math.random() * wait.spreadMs);
      return { status: 'scheduled', dueInMs, reason: WAIT_REASONS[wait.reason] };
    }
    return hasRoom && claimsFirstAttempts && !refusal ? undefined : state;
  }
}
