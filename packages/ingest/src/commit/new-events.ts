import { type RoutingOutcome, routingOutcomes } from '@gateway/core/routing';
import type { NewEvent } from '@gateway/store/events';
import type { ReadyEvent } from '../message/ready-message.js';

/** Returns an event as it is stored. @param outcome null: it is pending */
export function newEvent(event: ReadyEvent, outcome: RoutingOutcome | null = null): NewEvent {
  const status = outcome === null ? 'pending' : routingOutcomes[outcome].status;
  return { ...event, headers: JSON.stringify(event.headers), status, outcome };
}

/** The order of events in a commit: processes that meet the same events, as after a rebalance, lock them in one order. */
export function byId(one: NewEvent, other: NewEvent): number {
  return one.id < other.id ? -1 : 1;
}

/** Returns a filter that is true for the first event of each idempotency key. A statement may not meet the same row twice; the second of two is a duplicate by definition. */
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
