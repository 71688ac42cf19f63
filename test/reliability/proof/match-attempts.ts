import { grouped } from './grouped.js';
import type { Arrival } from './journal.js';
import type { AttemptRow } from './ledger.js';

/** Requests received, each matched with its recorded attempt. */
export interface Matched {
  readonly pairs: readonly Pair[];
  /** Requests without a recorded attempt. */
  readonly unrecorded: readonly Arrival[];
  /** Attempts with a recorded response and a request that never arrived. */
  readonly invented: readonly AttemptRow[];
}

export interface Pair {
  readonly arrival: Arrival;
  readonly attempt: AttemptRow;
  /** True if the agent received this response; false if it was lost. */
  readonly heard: boolean;
}

/** Attempts are recorded in whole milliseconds. */
const ROUNDED_MS = 2;
/**
 * Agents measure durations with the monotonic clock, while the time of day is adjusted meanwhile.
 */
const CLOCKS_MS = 100;

/**
 * Matches each request with an attempt of the same delivery, by the sender's timestamp, because the
 * receiver can record it late. Answered requests are matched first, because a response leaves the
 * least doubt; then the others.
 */
export function matchAttempts(
  arrivals: readonly Arrival[],
  attempts: readonly AttemptRow[],
): Matched {
  const attemptsOf = grouped(attempts, ({ delivery_id: id }) => id);
  const heard = new Map<AttemptRow, Arrival>();
  const unheard = new Map<AttemptRow, Arrival>();

  /** Assigns arrivals to fitting attempts. Returns the arrivals without one. */
  const give = (
    to: Map<AttemptRow, Arrival>,
    left: readonly Arrival[],
    fits: (attempt: AttemptRow, arrival: Arrival) => boolean,
  ) =>
    left.filter((arrival) => {
      const found = (attemptsOf.get(arrival.webhookId) ?? []).find(
        (attempt) => !to.has(attempt) && fits(attempt, arrival),
      );
      if (found) to.set(found, arrival);
      return !found;
    });
  let left: readonly Arrival[] = [...arrivals].sort((a, b) => a.atMs - b.atMs);
  left = give(
    heard,
    left,
    (attempt, arrival) => isSentBy(attempt, arrival) && isAnswer(attempt, arrival),
  );
  const unrecorded = give(
    unheard,
    left,
    (attempt, arrival) =>
      !heard.has(attempt) && isSentBy(attempt, arrival) && isWithoutAnswer(attempt, arrival),
  );
  const pairs = [heard, unheard].flatMap((some) =>
    [...some].map(([attempt, arrival]) => ({ attempt, arrival, heard: some === heard })),
  );
  return {
    pairs,
    unrecorded,
    invented: attempts.filter((attempt) => attempt.http_status !== null && !isHeard(attempt)),
  };

  /** A response with a lost body counts as given by the receiver. */
  function isHeard(attempt: AttemptRow): boolean {
    return heard.has(attempt) || unheard.get(attempt)?.status === attempt.http_status;
  }
}

function isSentBy({ requested_at_ms: atMs }: AttemptRow, arrival: Arrival): boolean {
  return Math.floor(atMs / 1000) === arrival.sentAtSeconds && arrival.atMs >= atMs - ROUNDED_MS;
}

/** True if the attempt recorded this complete response. */
function isAnswer(attempt: AttemptRow, arrival: Arrival): boolean {
  const { http_status: status, failed } = attempt;
  return (
    status === arrival.status &&
    (!failed || status < 200 || status >= 300) &&
    isNotedInTime(attempt, arrival)
  );
}

/** True if the attempt recorded no response, or an incomplete one. */
function isWithoutAnswer(attempt: AttemptRow, arrival: Arrival): boolean {
  return attempt.http_status === null || isNotedInTime(attempt, arrival);
}

/**
 * Holds on a busy machine too: the receiver records a request before it answers, and the agent
 * records its end after the response.
 */
function isNotedInTime(
  { requested_at_ms: atMs, duration_ms: durationMs }: AttemptRow,
  arrival: Arrival,
): boolean {
  return arrival.atMs <= atMs + durationMs + ROUNDED_MS + CLOCKS_MS;
}
