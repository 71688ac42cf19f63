import { eventDeliveryId } from '@gateway/core/events';
import type { TokenBuckets } from '@gateway/core/process';
import type { RoutingOutcome, Target } from '@gateway/core/routing';
import {
  type CommitPlan,
  type EventRouter,
  routeInCommit,
} from '@gateway/ingest/routing/event-router';
import {
  firstDelivery,
  firstState,
  type DeliveryState,
  type PlannedEvent,
} from '@gateway/ingest/routing/first-delivery';
import { orderKeysOf } from '@gateway/ingest/routing/order-key';
import { Matcher } from '@gateway/ingest/routing/matcher';
import type { Endpoint } from '@gateway/ingest/routing/project';
import { WAIT_REASONS } from '@gateway/store/deliveries';
import type { NewEventDelivery } from '@gateway/store/events';
import type { KeyTurn } from '@gateway/store/ordering';
import type { AgentContext } from '../config/agent-context.js';
import type { DueTimes } from '../delivery/due-times.js';
import type { DeliveriesInFlight } from '../delivery/in-flight.js';
import type { Gates } from '../flow-control/gates.js';
import type { InFlightDelivery } from '../model/delivery.js';

interface DeliveryPlannerOptions extends Pick<AgentContext, 'configCache'> {
  readonly lease: Pick<AgentContext['lease'], 'agentId'>;
  readonly inFlight: Pick<
    DeliveriesInFlight,
    'room' | 'isBusy' | 'onRecorded' | 'add' | 'reserve' | 'cancel'
  >;
  readonly gates: Pick<Gates, 'ask' | 'postpone'>;
  readonly dueTimes: Pick<DueTimes, 'add'>;
  readonly routingPace: TokenBuckets;
  /** A commit is routed as a whole even if only part of it fits: splitting would make tiny ones. */
  readonly batchSize: number;
  /** In the commit, rather than leaving first attempts to other agents. */
  readonly claimsFirstAttempts: boolean;
}

/** Routes the events of a commit while there is room, and claims deliveries with it. */
export class DeliveryPlanner extends Matcher implements EventRouter {
  constructor(private readonly options: DeliveryPlannerOptions) {
    super(options.routingPace);
  }

  isBusy(projectId: string): boolean {
    return this.options.inFlight.isBusy(projectId);
  }

  isOrdered(projectId: string): boolean {
    return this.options.configCache.projects.get(projectId)?.isOrdered === true;
  }

  mustWait(projectId: string): boolean {
    const { configCache, routingPace } = this.options;
    const isCurrent = configCache.isCurrent(projectId);
    if (!isCurrent) void configCache.refresh();
    return !isCurrent || routingPace.isOver(projectId);
  }

  onRecorded(listener: () => void): void {
    this.options.inFlight.onRecorded(listener);
  }

  plan(mayRoute: boolean): DeliveryPlan {
    const { configCache, inFlight, batchSize } = this.options;
    if (!configCache.isCurrent()) void configCache.refresh();
    const { room } = inFlight;
    return this.planWithin(mayRoute && room > 0 ? Math.max(room, batchSize) : 0);
  }

  /** @param room deliveries that this agent may claim */
  planWithin(room: number): DeliveryPlan {
    return new DeliveryPlan(this, this.options, room);
  }
}

/** Reserves the capacity of deliveries until the commit. */
class DeliveryPlan implements CommitPlan {
  readonly agentId: number;
  readonly routes: boolean;
  readonly deliveries: NewEventDelivery[] = [];
  readonly #claimed: (InFlightDelivery & NewEventDelivery)[] = [];
  /** Keys of this commit: only the first delivery of each can have its turn. */
  readonly #keys = new Set<string>();

  constructor(
    private readonly matcher: Matcher,
    private readonly options: DeliveryPlannerOptions,
    private room: number,
  ) {
    this.agentId = options.lease.agentId;
    this.routes = room > 0;
  }

  route(event: Parameters<CommitPlan['route']>[0]): RoutingOutcome | null {
    const { configCache } = this.options;
    if (this.room <= 0 && !configCache.projects.get(event.projectId)?.isOrdered) return null;
    const routed = routeInCommit(configCache, this.matcher, event);
    if (!routed) return null;
    this.add(event, routed.targets);
    return routed.outcome;
  }

  add(event: PlannedEvent, targets: readonly Target<Endpoint>[]): void {
    let body: Buffer | undefined;
    const project = this.options.configCache.projects.get(event.projectId);
    const keys = project?.isOrdered ? orderKeysOf(project, event) : undefined;
    for (const { endpoint, subscriptionId } of targets) {
      const order = keys ? keys(endpoint, subscriptionId) : null;
      const state =
        order && !this.#isFirst(endpoint, order.orderKey)
          ? firstState(endpoint)
          : this.#firstState(endpoint);
      if (state) {
        this.deliveries.push(firstDelivery(event, { endpoint, subscriptionId }, state, order));
        continue;
      }
      this.room--;
      // One object for the commit and for sending: most deliveries are claimed with their event.
      const claimed: InFlightDelivery & NewEventDelivery = {
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
        orderKey: order ? order.orderKey : null,
        ...(order && { orderText: order.orderText }),
        attempts: 0,
        traceparent: null,
        headers: event.headers,
        body: (body ??= Buffer.from(event.data)),
        agentId: this.agentId,
        queuedAtMs: 0,
      };
      this.options.inFlight.reserve(claimed);
      this.deliveries.push(claimed);
      this.#claimed.push(claimed);
    }
  }

  /**
   * After the commit: queues the new deliveries that this agent sends, and frees the capacity of
   * the others.
   */
  handOver(
    isNew: (eventId: string, deliveryId: string) => boolean,
    turns?: ReadonlySet<string> | null,
  ): void {
    const { inFlight, dueTimes } = this.options;
    const waits = ({ orderKey, id }: NewEventDelivery) => orderKey && !turns?.has(id);
    for (const delivery of this.deliveries)
      if (delivery.status === 'scheduled' && !waits(delivery))
        dueTimes.add(delivery.projectId, delivery.dueInMs);
    const isOurs = (it: NewEventDelivery) => isNew(it.eventId, it.id) && !waits(it);
    const ours = this.#claimed.filter(isOurs);
    if (ours.length < this.#claimed.length)
      inFlight.cancel(this.#claimed.filter((it) => !isOurs(it)));
    if (ours.length > 0) inFlight.add(ours);
  }

  turned(turns: readonly KeyTurn[]): void {
    for (const { projectId } of turns) this.options.dueTimes.add(projectId, 0);
  }

  drop(): void {
    this.options.inFlight.cancel(this.#claimed);
  }

  #isFirst({ id }: Endpoint, orderKey: string): boolean {
    const { size } = this.#keys;
    return this.#keys.add(`${id} ${orderKey}`).size > size;
  }

  /** Undefined if this agent claims the delivery with the commit. */
  #firstState(endpoint: Endpoint): DeliveryState | undefined {
    const state = firstState(endpoint);
    if (endpoint.unreadable || endpoint.status !== 'active') return state;
    const { gates, claimsFirstAttempts } = this.options;
    const refusal = gates.ask('commit', endpoint);
    const wait = refusal?.answer === 'postpone' && gates.postpone(endpoint, refusal, 1);
    if (typeof wait === 'object') {
      const dueInMs = wait.dueInMs + Math.round(Math.random() * wait.spreadMs);
      return { status: 'scheduled', dueInMs, reason: WAIT_REASONS[wait.reason] };
    }
    return this.room > 0 && claimsFirstAttempts && !refusal ? undefined : state;
  }
}
