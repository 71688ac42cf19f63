import { GatewayError } from '@gateway/core/errors';
import type { ProjectPace } from '@gateway/core/process';

const RETRY_AFTER_SECONDS = 1;

/** Throws `too_many_events` for a project that has sent more than it may. */
export type RequirePace = (projectId: string) => void;

/** @param perSecond `limits.events_per_second`, the rate of `pace`, which counts what is committed */
export function requirePace(pace: Pick<ProjectPace, 'isOver'>, perSecond: number): RequirePace {
  return (projectId) => {
    if (pace.isOver(projectId)) throw new GatewayError('too_many_events', { limit: perSecond, retryAfterSeconds: RETRY_AFTER_SECONDS });
  };
}
