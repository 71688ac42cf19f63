import { GatewayError } from '@gateway/core/errors';
import { ProjectTurns } from '@gateway/core/process';

/** Waiting requests per running one; only clients that do not wait for answers exceed it. */
const WAITING_FACTOR = 100;

/** Call it once. */
export type ReleaseShare = () => void;

/** A larger body occupies the process for milliseconds. */
export const LARGE_BYTES = 65_536;
/** Grouped requests hold no database connection. */
const GROUPED_FACTOR = 32;

/**
 * Waits for a share of the owner's concurrency. Large bodies get a quarter of the limit, grouped
 * requests many times as much. Throws `too_many_at_once` when too many wait.
 */
export type TakeShare = (
  owner: string,
  options: { readonly bytes: number; readonly isGrouped: boolean },
) => Promise<ReleaseShare>;

/** @param most concurrent requests of an owner: `server.project_concurrency` */
export function requestShares(most: number): TakeShare {
  const turnsOf = (limit: number) => ({ limit, turns: new ProjectTurns(limit) });
  const [single, large, grouped] = [
    turnsOf(most),
    turnsOf(Math.ceil(most / 4)),
    turnsOf(most * GROUPED_FACTOR),
  ];
  return async (owner, { bytes, isGrouped }) => {
    const { limit, turns } = bytes > LARGE_BYTES ? large : isGrouped ? grouped : single;
    if (turns.waitingOf(owner) >= WAITING_FACTOR * limit)
      throw new GatewayError('too_many_at_once', {
        limit,
        setting: 'server.project_concurrency',
        retryAfterSeconds: 1,
      });
    return turns.take(owner);
  };
}
