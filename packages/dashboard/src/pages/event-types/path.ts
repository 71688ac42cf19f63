import type { EventType } from '@gateway/client';

/** Names that are paths of other pages: such a type is found by its id. */
const TAKEN = ['new'];

/** Path of the page of an event type, below the project. */
export function pathOf({ uid, name }: Pick<EventType, 'uid' | 'name'>): string {
  return `/event-types/${TAKEN.includes(name) ? uid : encodeURIComponent(name)}`;
}
