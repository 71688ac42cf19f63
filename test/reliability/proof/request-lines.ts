import type { Line } from './books.js';
import { few } from './few.js';
import { grouped } from './grouped.js';
import type { Arrival, Journal } from './journal.js';
import type { Ledger } from './ledger.js';
import { matchAttempts, type Matched } from './match-attempts.js';
import { isSuccess } from './message-lines.js';

/** What the receiver saw against what is on record. */
export function requestLines(journal: Journal, ledger: Ledger): Line[] {
  const matched = matchAttempts(journal.arrivals, ledger.attempts, journal.faults);
  return [
    genuineLine(journal, ledger),
    recordedLine(journal, ledger, matched),
    {
      what: 'answers on record that the receiver did not give',
      expected: '0',
      found: few(matched.invented.map(({ delivery_id: id }) => id)),
      ok: matched.invented.length === 0,
    },
    repeatsLine(journal, ledger, matched),
  ];
}

function genuineLine({ arrivals }: Journal, ledger: Ledger): Line {
  const numberOf = new Map(ledger.events.map(({ id, n }) => [id, n]));
  const eventOf = new Map(ledger.deliveries.map(({ id, event_id: eventId }) => [id, eventId]));
  const isKnown = ({ webhookId, n }: Arrival) => numberOf.get(eventOf.get(webhookId) ?? '') === n;
  const unsigned = arrivals.filter(({ isSigned }) => !isSigned);
  const unknown = arrivals.filter((arrival) => !isKnown(arrival));
  return {
    what: 'requests with a valid signature and the id of a delivery',
    expected: String(arrivals.length),
    found:
      String(arrivals.filter((arrival) => arrival.isSigned && isKnown(arrival)).length) +
      (unsigned.length > 0 ? `; signature wrong: ${few(unsigned.map(({ n }) => n))}` : '') +
      (unknown.length > 0 ? `; id wrong: ${few(unknown.map(({ n, webhookId }) => `${n} (${webhookId})`))}` : ''),
    ok: unsigned.length === 0 && unknown.length === 0,
  };
}

/** An attempt is written together with others a moment after its answer; while the machine is busy the moment is longer. */
const RECORDING_MS = 10_000;
/** A request may be noted so long after it was sent, while the machine is busy; its agent may be dead by then. */
const NOTED_MS = 10_000;
/** So long may it take until an agent takes a connection to Postgres for dead. */
const HALF_OPEN_MS = 60_000;

/**
 * Only the death of its agent keeps an attempt from the log: it comes soon after the answer, or, when Postgres is away or the agent frozen meanwhile, soon after
 * that is over.
 */
function recordedLine({ arrivals, kills, faults }: Journal, { timeoutMs }: Ledger, { pairs, unrecorded }: Matched): Line {
  const deaths = kills.filter(({ kind }) => kind === 'kill').map(({ atMs }) => atMs);
  const delays = faults
    .filter(({ kind, target }) => target === 'postgres' || target === 'way to postgres' || kind === 'freeze agent')
    .map(({ kind, atMs, untilMs }) => ({ atMs, untilMs: untilMs + (kind === 'half-open' ? HALF_OPEN_MS : RECORDING_MS) }))
    .sort((a, b) => a.atMs - b.atMs);
  const wasInFlight = ({ atMs, status }: Arrival) => {
    let untilMs = atMs + RECORDING_MS + (status === 'hung' ? timeoutMs : 0);
    for (const delay of delays) if (delay.atMs <= untilMs && delay.untilMs >= atMs) untilMs = Math.max(untilMs, delay.untilMs);
    return deaths.some((death) => death >= atMs - NOTED_MS && death <= untilMs);
  };
  const unexplained = unrecorded.filter((arrival) => !wasInFlight(arrival));
  return {
    what: 'requests in the attempt log + in flight at a kill',
    expected: String(arrivals.length),
    found:
      `${pairs.length} + ${unrecorded.length - unexplained.length}` +
      (unexplained.length > 0 ? `; neither: ${few(unexplained.map(({ n, webhookId }) => `${n} (${webhookId})`))}` : ''),
    ok: unexplained.length === 0,
  };
}

/**
 * A delivery comes again after a success when its agent was taken for dead before it had written the attempt, and when the answer did not reach the agent. Both stand
 * in its rows, and how often.
 */
function repeatsLine({ arrivals }: Journal, ledger: Ledger, { pairs }: Matched): Line {
  const recovered = new Map(ledger.deliveries.map(({ id, recovered: times }) => [id, times]));
  const unheard = grouped(
    pairs.filter(({ arrival, heard }) => isSuccess(arrival.status) && !heard),
    ({ arrival }) => arrival.webhookId,
  );
  const successes = grouped(
    arrivals.filter(({ status }) => isSuccess(status)),
    ({ webhookId }) => webhookId,
  );
  let repeats = 0;
  const beyond: string[] = [];
  for (const [id, { length }] of successes) {
    repeats += length - 1;
    const allowed = (recovered.get(id) ?? 0) + (unheard.get(id)?.length ?? 0);
    if (length - 1 > allowed) beyond.push(`${id} (${length} times, ${allowed + 1} allowed)`);
  }
  const inFlight = ledger.deliveries.reduce((sum, { recovered: times }) => sum + times, 0);
  const lost = [...unheard.values()].reduce((sum, { length }) => sum + length, 0);
  return {
    what: 'repeats after a success: taken from an agent + answer lost',
    expected: `<= ${inFlight} + ${lost}`,
    found: String(repeats) + (beyond.length > 0 ? `; without a cause: ${few(beyond)}` : ''),
    ok: beyond.length === 0,
  };
}
