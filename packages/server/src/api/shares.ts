import { GatewayError } from '@gateway/core/errors';
import { ProjectTurns } from '@gateway/core/process';

/** Waiting requests allowed per running one. Only clients that do not await responses exceed it. */
const WAITING_FACTOR = 100;

/** Releases the share. Must be called once. */
export type ReleaseShare = () => void;

/** The size above which a body is large and occupies the process for milliseconds. */
export const LARGE_BYTES = 65_536;
/**
 * The factor by which the limit is raised for grouped requests, which hold no database connection.
 */
const GROUPED_FACTOR = 32;

/**
 * Waits for a share of the owner's concurrency and returns the function that releases it. Large
 * bodies get a quarter of the limit, and grouped requests many times the limit.
 *
 * @throws GatewayError `too_many_at_once` if too many requests of the owner are waiting
 */
export type TakeShare = (
  owner: string,
  options: { readonly bytes: number; readonly isGrouped: boolean },
) => Promise<ReleaseShare>;

/**
 * Returns a function that limits the concurrent requests of each owner.
 * @param most the limit per owner, from `server.project_concurrency`
 */
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
