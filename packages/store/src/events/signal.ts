import { isId, timeOfId } from '@gateway/core/events';
import type { EventRef } from './events.js';

/** What a signal of either queue says: the project and the event. */
export function signalText({ projectId, id }: Pick<EventRef, 'projectId' | 'id'>): string {
  return `${projectId} ${id}`;
}

/** The event that a signal names; null for a text that is none. */
export function refOfSignal(text: string): EventRef | null {
  const [projectId, id] = text.split(' ');
  return projectId && id && isId(projectId) && isId(id) ? { projectId, id, occurredAtMs: timeOfId(id) } : null;
}
