import { GatewayError } from '@gateway/core/errors';
import { ProjectTurns } from '@gateway/core/process';

/** How many may wait for each that is worked on; a client that does not wait for its answers meets this. */
const WAITING_FACTOR = 100;

/** Frees what was taken. Call it once. */
export type Release = () => void;

/** A body of more bytes takes the process some milliseconds. */
export const LARGE_BYTES = 65_536;
/** A grouped request holds no connection of its own. */
const GROUPED_FACTOR = 32;

/**
 * Takes the share of an owner for a request: those with large bodies get a quarter, those that commit together many times as much. Throws `too_many_at_once` when too
 * many wait.
 */
export type TakeShare = (owner: string, options: { readonly bytes: number; readonly isGrouped: boolean }) => Promise<Release>;

/** @param most requests of an owner at a time: `server.project_concurrency` */
export function requestShares(most: number): TakeShare {
  const turnsOf = (limit: number) => ({ limit, turns: new ProjectTurns(limit) });
  const [single, large, grouped] = [turnsOf(most), turnsOf(Math.ceil(most / 4)), turnsOf(most * GROUPED_FACTOR)];
  return async (owner, { bytes, isGrouped }) => {
    const { limit, turns } = bytes > LARGE_BYTES ? large : isGrouped ? grouped : single;
    if (turns.waitingOf(owner) >= WAITING_FACTOR * limit)
      throw new GatewayError('too_many_at_once', { limit, setting: 'server.project_concurrency', retryAfterSeconds: 1 });
    return turns.take(owner);
  };
}
