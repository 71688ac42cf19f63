import { GatewayError } from '@gateway/core/errors';
import { ProjectTurns, withTimeout } from '@gateway/core/process';

/** Waiting requests allowed per running one. Only clients that do not await responses exceed it. */
const WAITING_FACTOR = 100;

/** Must be called once. */
type ReleaseShare = () => void;

/** Processing a larger body occupies the process for milliseconds. */
export const LARGE_BYTES = 65_536;
/** Grouped requests hold no database connection, so many more may run. */
const GROUPED_FACTOR = 32;

/**
 * Large bodies get a quarter of the limit, and grouped requests many times the limit.
 *
 * @throws GatewayError `too_many_at_once` if too many requests of the owner are waiting
 */
type TakeShare = (
  owner: string,
  options: { readonly bytes: number; readonly createsEvents: boolean },
) => Promise<ReleaseShare>;

/** @param most the limit per owner, from `server.project_concurrency` */
export function requestShares(most: number): TakeShare {
  const turnsOf = (limit: number) => ({ limit, turns: new ProjectTurns(limit) });
  const [single, large, grouped] = [
    turnsOf(most),
    turnsOf(Math.ceil(most / 4)),
    turnsOf(most * GROUPED_FACTOR),
  ];
  return async (owner, { bytes, createsEvents }) => {
    const { limit, turns } = bytes > LARGE_BYTES ? large : createsEvents ? grouped : single;
    if (turns.waitingOf(owner) >= WAITING_FACTOR * limit)
      throw new GatewayError('too_many_at_once', {
        limit,
        setting: 'server.project_concurrency',
        retryAfterSeconds: 1,
      });
    return turns.take(owner);
  };
}

const READS_WAITING_MAX = 5;
/** The route must respond before its own time limit. */
const READ_WAIT_MS = 10_000;

/**
 * For work that reads for seconds, such as a search or a batch. Throws `too_many_searches` if too
 * much of the owner's work waits, or its turn does not come in time.
 */
type LongReads = <Result>(owner: string, work: () => Promise<Result>) => Promise<Result>;

/**
 * Each owner's work runs one at a time, and that of all owners on a quarter of the connections, so
 * that other requests find one.
 */
export function longReads(connections: number): LongReads {
  const most = Math.max(1, Math.floor(connections / 4));
  const [own, all] = [new ProjectTurns(), new ProjectTurns(most)];
  const taken = async (turns: ProjectTurns, owner: string, busy: () => GatewayError) => {
    const turn = turns.take(owner);
    return withTimeout(turn, READ_WAIT_MS).catch(() => {
      void turn.then((release) => release());
      throw busy();
    });
  };
  return async (owner, work) => {
    const waiting = own.waitingOf(owner);
    const busy = () =>
      new GatewayError('too_many_searches', {
        waiting,
        most,
        retryAfterSeconds: Math.max(1, waiting),
      });
    if (waiting >= READS_WAITING_MAX) throw busy();
    const release = await taken(own, owner, busy);
    try {
      const releaseOfAll = await taken(all, '', busy);
      return await work().finally(releaseOfAll);
    } finally {
      release();
    }
  };
}
