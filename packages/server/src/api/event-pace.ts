import { GatewayError } from '@gateway/core/errors';
import { ProjectPace, workOfEvents } from '@gateway/core/process';

const RETRY_AFTER_SECONDS = 1;

/** Counts the events that a project sends over HTTP, as agents count those that it sends by a broker. */
export interface EventPace {
  /** Throws `too_many_events` for a project that has sent more than it may. */
  require(projectId: string): void;
  add(projectId: string, events: number, bytes: number): void;
}

/** @param perSecond `limits.events_per_second`; 0: any number */
export function eventPace(perSecond: number): EventPace {
  const pace = new ProjectPace(perSecond);
  return {
    require(projectId) {
      if (pace.isOver(projectId)) throw new GatewayError('too_many_events', { limit: perSecond, retryAfterSeconds: RETRY_AFTER_SECONDS });
    },
    add: (projectId, events, bytes) => pace.add(projectId, workOfEvents(events, bytes)),
  };
}
