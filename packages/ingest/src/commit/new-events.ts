import { type RoutingOutcome, routingOutcomes } from '@gateway/core/routing';
import type { NewEvent } from '@gateway/store/events';
import type { ReadyEvent } from '../message/ready-message.js';

/** Without an outcome, the status is `pending`. */
export function newEvent(event: ReadyEvent, outcome: RoutingOutcome | null = null): NewEvent {
  const status = outcome === null ? 'pending' : routingOutcomes[outcome].status;
  return { ...event, headers: JSON.stringify(event.headers), status, outcome };
}

/**
 * All processes lock events in this order, because several may have the same events, such as after
 * a rebalance.
 */
export function byId(one: NewEvent, other: NewEvent): number {
  return one.id < other.id ? -1 : 1;
}

/** Only the first event per idempotency key, because a statement cannot change a row twice. */
export function onePerKey(): (event: Pick<ReadyEvent, 'projectId' | 'idempotencyKey'>) => boolean {
  const keys = new Set<string>();
  return ({ projectId, idempotencyKey }) => {
    if (idempotencyKey === null) return true;
    const key = `${projectId}\n${idempotencyKey}`;
    if (keys.has(key)) return false;
    keys.add(key);
    return true;
  };
}
