import type { EventType } from '@gateway/client';

/** Other pages have these paths. An event type with such a name has its id in the path. */
const TAKEN = ['new'];

/** Relative to the project. */
export function pathOf({ uid, name }: Pick<EventType, 'uid' | 'name'>): string {
  return `/event-types/${TAKEN.includes(name) ? uid : encodeURIComponent(name)}`;
}
