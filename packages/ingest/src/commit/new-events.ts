import type { NewEvent } from '@gateway/store/events';

/**
 * All processes lock events in this order, because several may have the same events, such as after
 * a rebalance.
 */
export function byId(one: Pick<NewEvent, 'id'>, other: Pick<NewEvent, 'id'>): number {
  return one.id < other.id ? -1 : 1;
}

/** Only the first event per idempotency key, because a statement cannot change a row twice. */
export function onePerKey(): (event: Pick<NewEvent, 'projectId' | 'idempotencyKey'>) => boolean {
  const keys = new Set<string>();
  return ({ projectId, idempotencyKey }) => {
    if (idempotencyKey === null) return true;
    const key = `${projectId}\n${idempotencyKey}`;
    if (keys.has(key)) return false;
    keys.add(key);
    return true;
  };
}
