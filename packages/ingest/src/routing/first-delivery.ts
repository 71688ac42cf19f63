import { eventDeliveryId } from '@gateway/core/events';
import type { Target } from '@gateway/core/routing';
import { DISCARD_REASONS } from '@gateway/store/deliveries';
import type { NewEvent, NewEventDelivery } from '@gateway/store/events';
import type { OrderKeys } from './order-key.js';
import type { Endpoint } from './project.js';

export type PlannedEvent = Pick<
  NewEvent,
  'projectId' | 'id' | 'occurredAtMs' | 'eventType' | 'sourceId' | 'headers' | 'data' | 'message'
>;

export type DeliveryState = Pick<NewEventDelivery, 'status' | 'dueInMs' | 'reason'>;

export function firstDelivery(
  event: PlannedEvent,
  { endpoint, subscriptionId }: Target<Endpoint>,
  state: DeliveryState,
  order: ReturnType<OrderKeys> = null,
): NewEventDelivery {
  return {
    projectId: event.projectId,
    id: eventDeliveryId(event.id, endpoint.id, subscriptionId),
    occurredAtMs: event.occurredAtMs,
    eventId: event.id,
    endpointId: endpoint.id,
    subscriptionId,
    eventType: event.eventType,
    sourceId: event.sourceId,
    status: state.status,
    dueInMs: state.dueInMs,
    reason: state.reason,
    ...order,
  };
}

const DUE: DeliveryState = { status: 'scheduled', dueInMs: 0, reason: null };

/** An unclaimed delivery is due, waits for a paused endpoint, or is discarded. */
export function firstState(endpoint: Endpoint): DeliveryState {
  if (endpoint.unreadable || endpoint.status === 'active') return DUE;
  return endpoint.status === 'paused'
    ? { status: 'scheduled', dueInMs: Infinity, reason: null }
    : { status: 'discarded', dueInMs: 0, reason: inactiveReason(endpoint) };
}

/** Why a delivery is discarded. `endpoint` is undefined if deleted. */
export function inactiveReason(endpoint: Endpoint | undefined): string {
  if (!endpoint) return DISCARD_REASONS.endpoint_deleted;
  return `${DISCARD_REASONS.endpoint_inactive}${endpoint.statusReason ? `: ${endpoint.statusReason}` : '.'}`;
}
