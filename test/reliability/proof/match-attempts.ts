import { grouped } from './grouped.js';
import type { Arrival } from './journal.js';
import type { AttemptRow } from './ledger.js';

/** Requests that came, each with the attempt on record that it was. */
export interface Matched {
  readonly pairs: readonly Pair[];
  /** Requests that no attempt tells of. */
  readonly unrecorded: readonly Arrival[];
  /** Attempts that were answered, as their record says, and that never came. */
  readonly invented: readonly AttemptRow[];
}

export interface Pair {
  readonly arrival: Arrival;
  readonly attempt: AttemptRow;
  /** The agent got this answer; false when it was lost on the way back. */
  readonly heard: boolean;
}

/** Attempts are timed by whole milliseconds. */
const ROUNDED_MS = 2;
/** An agent measures how long an attempt takes by the monotonic clock, and the time of day is set by others meanwhile. */
const CLOCKS_MS = 100;

/**
 * Finds for each request the attempt that sent it, of the same delivery and by the sender's own time, for the receiver may note it late. What was answered is found
 * first, since an answer leaves the least doubt; then what was not.
 */
export function matchAttempts(arrivals: readonly Arrival[], attempts: readonly AttemptRow[]): Matched {
  const attemptsOf = grouped(attempts, ({ delivery_id: id }) => id);
  const heard = new Map<AttemptRow, Arrival>();
  const unheard = new Map<AttemptRow, Arrival>();

  /** Gives each arrival that is left to an attempt that fits, and leaves the others. */
  const give = (to: Map<AttemptRow, Arrival>, left: readonly Arrival[], fits: (attempt: AttemptRow, arrival: Arrival) => boolean) =>
    left.filter((arrival) => {
      const found = (attemptsOf.get(arrival.webhookId) ?? []).find((attempt) => !to.has(attempt) && fits(attempt, arrival));
      if (found) to.set(found, arrival);
      return !found;
    });
  let left: readonly Arrival[] = [...arrivals].sort((a, b) => a.atMs - b.atMs);
  left = give(heard, left, (attempt, arrival) => isSentBy(attempt, arrival) && isAnswer(attempt, arrival));
  const unrecorded = give(
    unheard,
    left,
    (attempt, arrival) => !heard.has(attempt) && isSentBy(attempt, arrival) && isWithoutAnswer(attempt, arrival),
  );
  const pairs = [heard, unheard].flatMap((some) => [...some].map(([attempt, arrival]) => ({ attempt, arrival, heard: some === heard })));
  return { pairs, unrecorded, invented: attempts.filter((attempt) => attempt.http_status !== null && !isHeard(attempt)) };

  /** An answer whose body was lost on its way counts as one that the receiver gave. */
  function isHeard(attempt: AttemptRow): boolean {
    return heard.has(attempt) || unheard.get(attempt)?.status === attempt.http_status;
  }
}

function isSentBy({ requested_at_ms: atMs }: AttemptRow, arrival: Arrival): boolean {
  return Math.floor(atMs / 1000) === arrival.sentAtSeconds && arrival.atMs >= atMs - ROUNDED_MS;
}

/** True when the attempt's record tells of this answer, all of it. */
function isAnswer(attempt: AttemptRow, arrival: Arrival): boolean {
  const { http_status: status, failed } = attempt;
  return status === arrival.status && (!failed || status < 200 || status >= 300) && isNotedInTime(attempt, arrival);
}

/** True when the attempt's record tells that this request was not answered, or not to the end. */
function isWithoutAnswer(attempt: AttemptRow, arrival: Arrival): boolean {
  return attempt.http_status === null || isNotedInTime(attempt, arrival);
}

/** However busy the machine is: the receiver notes a request before it answers, and the agent notes its end after the answer. */
function isNotedInTime({ requested_at_ms: atMs, duration_ms: durationMs }: AttemptRow, arrival: Arrival): boolean {
  return arrival.atMs <= atMs + durationMs + ROUNDED_MS + CLOCKS_MS;
}
