import type { Line } from './reconcile.js';
import { few } from './few.js';
import { grouped } from './grouped.js';
import type { Arrival, Journal } from './journal.js';
import type { Ledger } from './ledger.js';
import { matchAttempts, type Matched } from './match-attempts.js';
import { isSuccess } from './message-lines.js';

/** Compares the receiver's requests with the recorded attempts. */
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
      (unknown.length > 0
        ? `; id wrong: ${few(unknown.map(({ n, webhookId }) => `${n} (${webhookId})`))}`
        : ''),
    ok: unsigned.length === 0 && unknown.length === 0,
  };
}

/**
 * Attempts are recorded in batches a moment after the response, or once Postgres is back or a dead
 * connection is replaced; later on a busy machine.
 */
const RECORDING_MS = 20_000;

/**
 * An attempt can be missing only because its agent died. Then its delivery was recovered from that
 * agent, as its row shows, and the agent died while the request was in flight or soon after, or
 * soon after the end of a Postgres outage or a freeze.
 */
function recordedLine(
  { arrivals, kills, faults }: Journal,
  { deliveries, timeoutMs }: Ledger,
  { pairs, unrecorded }: Matched,
): Line {
  const recovered = new Map(deliveries.map(({ id, recovered: times }) => [id, times]));
  const deaths = kills.filter(({ kind }) => kind === 'kill');
  const delays = faults
    .filter(
      ({ kind, target }) => /^(link to )?(postgres|worker)/.test(target) || kind === 'freeze agent',
    )
    .map(({ atMs, untilMs }) => ({ atMs, untilMs: untilMs + RECORDING_MS }))
    .sort((a, b) => a.atMs - b.atMs);
  const wasInFlight = ({ sentAtSeconds }: Arrival) => {
    const atMs = 1000 * sentAtSeconds;
    let untilMs = atMs + 1000 + timeoutMs + RECORDING_MS;
    for (const delay of delays)
      if (delay.atMs <= untilMs && delay.untilMs >= atMs)
        untilMs = Math.max(untilMs, delay.untilMs);
    return deaths.some((death) => death.untilMs >= atMs && death.atMs <= untilMs);
  };
  const unexplained = [...grouped(unrecorded, ({ webhookId }) => webhookId)].flatMap(
    ([id, some]) => {
      const inFlight = some.filter(wasInFlight).slice(0, recovered.get(id) ?? 0);
      return some.filter((arrival) => !inFlight.includes(arrival));
    },
  );
  return {
    what: 'requests in the attempt log + in flight at a kill',
    expected: String(arrivals.length),
    found:
      `${pairs.length} + ${unrecorded.length - unexplained.length}` +
      (unexplained.length > 0
        ? `; neither: ${few(unexplained.map(({ n, webhookId }) => `${n} (${webhookId})`))}`
        : ''),
    ok: unexplained.length === 0,
  };
}

/**
 * A delivery is repeated after a success if its agent was considered dead before it had recorded
 * the attempt, or if the response was lost. The rows show both, and how often.
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
