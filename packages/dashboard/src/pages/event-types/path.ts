import type { EventType } from '@gateway/client';

/**
 * Names that would collide with other page paths. An event type with such a name has its id in the
 * path.
 */
const TAKEN = ['new'];

/** Returns the path of an event type's page, relative to the project. */
export function pathOf({ uid, name }: Pick<EventType, 'uid' | 'name'>): string {
  return `/event-types/${TAKEN.includes(name) ? uid : encodeURIComponent(name)}`;
}
