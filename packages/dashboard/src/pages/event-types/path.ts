import type { EventType } from '@gateway/client';

/** Names that are paths of other pages: the page of such a type uses its id. */
const TAKEN = ['new'];

/** The path of an event type's page, below the project. */
export function pathOf({ uid, name }: Pick<EventType, 'uid' | 'name'>): string {
  return `/event-types/${TAKEN.includes(name) ? uid : encodeURIComponent(name)}`;
}
