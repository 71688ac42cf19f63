import { grouped } from './grouped.js';
import type { Arrival, FaultDone } from './journal.js';
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

/** The receiver notes a request when it has read all of it and gets to it: before its answer, but perhaps after the sender has given up. */
const LATE_MS = 30_000;
/** An attempt is timed by whole milliseconds. */
const ROUNDED_MS = 2;
/** A request whose connection is lost within this time is sent once more, and the record tells of the second. */
const REPEATED_WITHIN_MS = 1_000;

/**
 * Finds for each request the attempt that sent it, of the same delivery. What was answered is found first, since an answer leaves the least doubt; then what
 * was not, which may come late; then the first request of an attempt that sent two because the connection was lost under it.
 */
export function matchAttempts(arrivals: readonly Arrival[], attempts: readonly AttemptRow[], faults: readonly FaultDone[]): Matched {
  const lossy = faults.filter(({ target }) => target === 'way to receiver');
  const mayHaveLost = ({ atMs, status }: Arrival) =>
    status === 'hung' || lossy.some((one) => atMs >= one.atMs - REPEATED_WITHIN_MS && atMs <= one.untilMs + REPEATED_WITHIN_MS);
  const attemptsOf = grouped(attempts, ({ delivery_id: id }) => id);
  const heard = new Map<AttemptRow, Arrival>();
  const unheard = new Map<AttemptRow, Arrival>();
  const repeated = new Map<AttemptRow, Arrival>();

  /** Gives each arrival that is left to an attempt that fits, and leaves the others. */
  const give = (to: Map<AttemptRow, Arrival>, left: readonly Arrival[], fits: (attempt: AttemptRow, arrival: Arrival) => boolean) =>
    left.filter((arrival) => {
      const found = (attemptsOf.get(arrival.webhookId) ?? []).find((attempt) => !to.has(attempt) && fits(attempt, arrival));
      if (found) to.set(found, arrival);
      return !found;
    });
  let left: readonly Arrival[] = [...arrivals].sort((a, b) => a.atMs - b.atMs);
  left = give(heard, left, (attempt, arrival) => isAnswer(attempt, arrival) && isDuring(attempt, arrival, ROUNDED_MS, ROUNDED_MS));
  left = give(unheard, left, (attempt, arrival) => !heard.has(attempt) && isDuring(attempt, arrival, ROUNDED_MS, LATE_MS));
  const unrecorded = give(
    repeated,
    left,
    (attempt, arrival) => mayHaveLost(arrival) && isDuring(attempt, arrival, REPEATED_WITHIN_MS, LATE_MS),
  );
  const pairs = [heard, unheard, repeated].flatMap((some) =>
    [...some].map(([attempt, arrival]) => ({ attempt, arrival, heard: some === heard })),
  );
  return { pairs, unrecorded, invented: attempts.filter((attempt) => attempt.http_status !== null && !isHeard(attempt)) };

  /** An answer whose body was lost on its way counts as one that the receiver gave. */
  function isHeard(attempt: AttemptRow): boolean {
    return heard.has(attempt) || unheard.get(attempt)?.status === attempt.http_status;
  }
}

/** True when the request came while the attempt was under way, or so long before or after. */
function isDuring(
  { requested_at_ms: fromMs, duration_ms: durationMs }: AttemptRow,
  { atMs }: Arrival,
  beforeMs: number,
  afterMs: number,
): boolean {
  return atMs >= fromMs - beforeMs && atMs <= fromMs + durationMs + afterMs;
}

/** True when the attempt's record tells of this answer, all of it. */
function isAnswer({ http_status: status, failed }: AttemptRow, arrival: Arrival): boolean {
  return status === arrival.status && (!failed || status < 200 || status >= 300);
}
