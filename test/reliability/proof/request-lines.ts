import type { Line } from './reconcile.js';
import { few } from './few.js';
import { grouped } from './grouped.js';
import type { Arrival, Journal } from './journal.js';
import type { Ledger } from './ledger.js';
import { matchAttempts, type Matched } from './match-attempts.js';
import { isSuccess } from './message-lines.js';

/** What the receiver saw against what is on record. */
export function requestLines(journal: Journal, ledger: Ledger): Line[] {
  const matched = matchAttempts(journal.arrivals, ledger.attempts);
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

/**
 * An attempt is written together with others a moment after its answer, or after Postgres is back, be it that a connection has died; while the machine is busy the
 * moment is longer.
 */
const RECORDING_MS = 20_000;

/**
 * Only the death of its agent keeps an attempt from the log. Then its delivery was taken from that agent, which stands in its row. And the death came while the
 * request was under way or soon after, or, when Postgres was away or the agent frozen meanwhile, soon after that was over.
 */
function recordedLine({ arrivals, kills, faults }: Journal, { deliveries, timeoutMs }: Ledger, { pairs, unrecorded }: Matched): Line {
  const recovered = new Map(deliveries.map(({ id, recovered: times }) => [id, times]));
  const deaths = kills.filter(({ kind }) => kind === 'kill');
  const delays = faults
    .filter(({ kind, target }) => target === 'postgres' || target === 'link to postgres' || kind === 'freeze agent')
    .map(({ atMs, untilMs }) => ({ atMs, untilMs: untilMs + RECORDING_MS }))
    .sort((a, b) => a.atMs - b.atMs);
  const wasInFlight = ({ sentAtSeconds }: Arrival) => {
    const atMs = 1000 * sentAtSeconds;
    let untilMs = atMs + 1000 + timeoutMs + RECORDING_MS;
    for (const delay of delays) if (delay.atMs <= untilMs && delay.untilMs >= atMs) untilMs = Math.max(untilMs, delay.untilMs);
    return deaths.some((death) => death.untilMs >= atMs && death.atMs <= untilMs);
  };
  const unexplained = [...grouped(unrecorded, ({ webhookId }) => webhookId)].flatMap(([id, some]) => {
    const inFlight = some.filter(wasInFlight).slice(0, recovered.get(id) ?? 0);
    return some.filter((arrival) => !inFlight.includes(arrival));
  });
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
