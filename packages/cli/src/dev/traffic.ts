import { setTimeout as sleep } from 'node:timers/promises';
import { sentenceOf } from '@gateway/agent/model';
import type { Log } from '@gateway/core/logging';
import { LinePrinter } from './line-printer.js';
import type { AttemptView, DeliveryView, EventView, Logs, QuarantinedView } from './log-views.js';
import { excerpt, paint, timeOfDay } from '../output/paint.js';
import type { Receipt } from './receipt.js';

/** How often the logs are looked at, and how far back: beyond that a flood is told by its number alone. */
const LOOK_MS = 1_000;
const ROWS = 100;

const SHOWN_BODY = 60;

export interface Traffic {
  /** Prints a request that came to the inbox. */
  received(receipt: Receipt): void;
  close(): Promise<void>;
}

/**
 * Prints a line for each delivery: those to the inbox when they come, all others, and what was quarantined or went nowhere, from the logs. What was there
 * before is not told.
 *
 * @param inboxUrl where the deliveries go that are told by `received`
 */
export async function followTraffic({
  logs,
  inboxUrl,
  log,
  print,
}: {
  logs: Logs;
  inboxUrl: string;
  log: Log;
  print: (line: string) => void;
}): Promise<Traffic> {
  const lines = new LinePrinter(print);
  const tell = (at: number, word: string, text: string) => lines.line(`${paint('dim', timeOfDay(at))}  ${word}  ${text}`);
  const deliveries = changes(
    (it: DeliveryView) => it.uid,
    (it) => String(it.attempts),
  );
  const events = changes(
    (it: EventView) => it.uid,
    (it) => it.status,
  );
  const quarantined = changes(
    (it: QuarantinedView) => it.uid,
    () => '',
  );

  async function look(isFirst: boolean): Promise<void> {
    const [newDeliveries, newEvents, newQuarantined] = [
      deliveries(await logs.deliveries(ROWS)),
      events(await logs.events(ROWS)),
      quarantined(await logs.quarantined(ROWS)),
    ];
    if (isFirst) return;
    for (const { reason, code } of newQuarantined) tell(Date.now(), paint('red', 'quarantined'), `${code}: ${reason}`);
    for (const { uid, event_type: type, outcome } of newEvents) {
      if (outcome === null || outcome === 'routed') continue;
      tell(Date.now(), paint('yellow', 'nobody     '), `${type} ${uid}: ${sentenceOf(outcome)}`);
    }
    for (const delivery of newDeliveries) {
      if (delivery.attempts === 0 || delivery.endpoint_metadata.url?.startsWith(inboxUrl)) continue;
      const [attempt] = await logs.attemptsOf(delivery.uid);
      if (attempt) tellAttempt(delivery, attempt);
    }
  }
  function tellAttempt(
    { event_metadata: { event_type: type }, endpoint_metadata: { name }, next_attempt_at: next }: DeliveryView,
    attempt: AttemptView,
  ): void {
    const { requested_at, duration_ms: duration, http_status: status, error, number, status: isDelivered } = attempt;
    const answer = `${type ?? 'event'} to ${name}: ${status ?? error} in ${duration} ms, attempt ${number}`;
    const again = next === null ? '' : `, again at ${timeOfDay(Date.parse(next))}`;
    tell(
      Date.parse(requested_at),
      isDelivered ? paint('green', 'delivered  ') : paint('red', 'failed     '),
      isDelivered ? answer : answer + again,
    );
  }

  await look(true);
  const closing = new AbortController();
  const looking = (async () => {
    while (!closing.signal.aborted) {
      await sleep(LOOK_MS, undefined, { signal: closing.signal }).catch(() => undefined);
      if (!closing.signal.aborted) await look(false).catch((error: unknown) => log.warn({ error }, 'The logs could not be read.'));
    }
  })();
  return {
    received({ receivedAt, id, body, problem }) {
      const text = `${id || 'a request without webhook-id'}  ${paint('dim', excerpt(body, SHOWN_BODY))}`;
      if (problem === undefined) tell(receivedAt, paint('green', 'delivered  '), `${text}  200, signature verified`);
      else tell(receivedAt, paint('red', 'refused    '), `${text}  401, ${problem}`);
    },
    async close() {
      closing.abort();
      await looking;
      lines.close();
    },
  };
}

/** Which rows of a list are new or changed since the last look; oldest first. Remembers no more than the last list. */
function changes<Row>(idOf: (row: Row) => string, versionOf: (row: Row) => string): (rows: readonly Row[]) => Row[] {
  let known = new Map<string, string>();
  return (rows) => {
    const changed = rows.filter((row) => known.get(idOf(row)) !== versionOf(row));
    known = new Map(rows.map((row) => [idOf(row), versionOf(row)]));
    return changed.reverse();
  };
}
