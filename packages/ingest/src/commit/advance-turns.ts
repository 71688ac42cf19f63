import type { Log } from '@gateway/core/logging';
import type { Accepted, NewEventDelivery } from '@gateway/store/events';
import { advanceKeys, type OrderedKey, type KeyTurn } from '@gateway/store/ordering';
import type { Database } from '@gateway/store/postgres';

/**
 * After a commit of deliveries with order keys: gives turns to keys that had others waiting.
 * A failure is left to a sweep, since the events are accepted.
 */
export async function advanceTurns(
  { database, log }: { readonly database: Pick<Database, 'pool'>; readonly log: Pick<Log, 'warn'> },
  deliveries: readonly NewEventDelivery[],
  turns: NonNullable<Accepted['turns']>,
): Promise<readonly KeyTurn[]> {
  const keys: OrderedKey[] = [];
  for (const { projectId, endpointId, orderKey, id } of deliveries)
    if (orderKey && !turns.has(id)) keys.push({ projectId, endpointId, orderKey });
  if (keys.length === 0) return [];
  return advanceKeys(database.pool, keys).catch((error: unknown) => {
    log.warn({ error }, 'Could not look for the next deliveries of keys; a sweep will.');
    return [];
  });
}
