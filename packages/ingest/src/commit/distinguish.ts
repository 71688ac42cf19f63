import { readMessages, type StoredMessage } from '@gateway/store/events';
import type { Database } from '@gateway/store/postgres';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { ReadyEvent, ReadyMessage } from '../message/ready-message.js';
import type { Rejection } from '../validate/reject-codes.js';

export interface Committed {
  /** Whether the commit created this event for this message. */
  isNew(message: ReadyMessage, event: Pick<ReadyEvent, 'id'>): boolean;
  /** Returns why a message was not added to quarantine, or undefined if it was added. */
  leftAs(message: QuarantinedMessage): 'same' | 'other' | 'refused' | undefined;
}

const COORDINATES_REUSED: Rejection = {
  code: 'coordinates_reused',
  reason:
    'An event of other content was accepted with the same coordinates and time before agents kept a digest of each message, so it cannot be told whether this is that message again or one of a topic that was created anew. Compare it with that event; if it is another message, replay it.',
};

/**
 * Finds messages that were not stored because a different message has their coordinates and time,
 * such as after a topic was recreated. They get new ids, or are rejected if it cannot be determined
 * whether they differ. Returns the messages to commit again.
 */
export async function distinguish(
  pool: Database['pool'],
  messages: readonly ReadyMessage[],
  { isNew, leftAs }: Committed,
): Promise<ReadonlySet<ReadyMessage>> {
  const refused = new Map<ReadyMessage, readonly ReadyEvent[]>();
  const again = new Set<ReadyMessage>();
  for (const message of messages) {
    const events = message.events.filter((event) => !isNew(message, event));
    if (events.length > 0) refused.set(message, events);
    if (!message.quarantined || leftAs(message.quarantined) !== 'other') continue;
    message.distinguish(new Set());
    again.add(message);
  }
  if (refused.size === 0) return again;
  const stored = await readMessages(pool, [...refused.values()].flat());
  for (const [message, events] of refused) {
    const found = events.map((event) => [event.id, compare(event, stored.get(event.id))] as const);
    if (found.some(([, is]) => is === 'undecided')) message.reject(COORDINATES_REUSED);
    else if (found.some(([, is]) => is === 'other'))
      message.distinguish(new Set(found.flatMap(([id, is]) => (is === 'other' ? id : []))));
    else continue;
    again.add(message);
  }
  return again;
}

/**
 * Compares an event with the stored event of the same id. The result is also `same` if none is
 * stored, because its idempotency key is then already in use.
 */
export function compare(
  event: Pick<ReadyEvent, 'digest' | 'eventType' | 'data'>,
  stored: StoredMessage | undefined,
): 'same' | 'other' | 'undecided' {
  if (!stored || stored.digest === event.digest) return 'same';
  if (stored.digest !== null) return 'other';
  return stored.eventType === event.eventType && stored.data === event.data ? 'same' : 'undecided';
}
