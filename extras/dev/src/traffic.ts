import { setTimeout as sleep } from 'node:timers/promises';
import { sentenceOf } from '@gateway/core/routing';
import { escapeLine } from '@gateway/cli/output/escape-terminal';
import { paint, timeOfDay } from '@gateway/cli/output/paint';
import type { AttemptView, DeliveryView, EventView, QuarantinedView } from './api.js';
import type { Instance } from './instance.js';
import type { Receipt } from './services/inbox.js';

const POLL_MS = 1_000;
const ROWS = 100;
/** The maximum number of lines per second. Further ones are only counted. */
const LINES_MAX = 20;
const BODY_CHARS = 60;

/**
 * Prints new deliveries, quarantined messages, events without deliveries, and changes of the
 * agent's health, polled once a second until the signal aborts.
 */
export async function followTraffic(
  { api, inbox, project, health, log }: Instance,
  { print, signal }: { print: (line: string) => void; signal: AbortSignal },
): Promise<void> {
  const newReceipts = changes<Receipt>(
    ({ received_at: at, headers }) => `${at} ${headers['webhook-id']}`,
  );
  const newQuarantined = changes<QuarantinedView>(({ uid }) => uid);
  const newEvents = changes<EventView>(({ uid, status }) => `${uid} ${status}`);
  const newDeliveries = changes<DeliveryView>(({ uid, attempts }) => `${uid} ${attempts}`);
  const newComponents = changes<Awaited<ReturnType<typeof health>>[number]>(
    ({ name, state, reason }) => `${name} ${state} ${reason}`,
  );

  async function poll(isFirst: boolean): Promise<void> {
    const deliveries = newDeliveries(
      await api.list<DeliveryView>(`${project}/eventdeliveries?perPage=${ROWS}`),
    );
    const events = newEvents(await api.list<EventView>(`${project}/events?perPage=${ROWS}`));
    const quarantined = newQuarantined(
      await api.list<QuarantinedView>(`${project}/quarantine?perPage=${ROWS}`),
    );
    const components = newComponents(await health());
    const receipts = newReceipts(inbox.receipts);
    if (isFirst) return;
    const lines: string[] = [];
    const add = (atMs: number, colour: 'green' | 'yellow' | 'red', word: string, text: string) =>
      lines.push(`${paint('dim', timeOfDay(atMs))}  ${paint(colour, word.padEnd(11))}  ${text}`);
    const now = Date.now();
    for (const { name, state, reason = state } of components) {
      if (state === 'ok') add(now, 'green', 'working', name);
      else if (state === 'down') add(now, 'red', 'failing', `${name}: ${reason}`);
    }
    for (const { reason, code } of quarantined)
      add(now, 'red', 'quarantined', `${code}: ${reason}`);
    for (const { uid, event_type: type, outcome } of events) {
      if (outcome !== null && outcome !== 'routed')
        add(now, 'yellow', 'nobody', `${type} ${uid}: ${sentenceOf(outcome)}`);
    }
    for (const { received_at: at, headers, body, problem } of receipts) {
      const text = `${headers['webhook-id'] ?? 'a request without webhook-id'}  ${paint('dim', escapeLine(body, BODY_CHARS))}`;
      if (problem === null)
        add(Date.parse(at), 'green', 'delivered', `${text}  200, signature verified`);
      else add(Date.parse(at), 'red', 'refused', `${text}  401, ${problem}`);
    }
    for (const {
      uid,
      attempts,
      event_metadata: event,
      endpoint_metadata: endpoint,
      next_attempt_at: next,
    } of deliveries) {
      if (attempts === 0 || endpoint.url?.startsWith(inbox.url)) continue;
      const [attempt] = await api.list<AttemptView>(
        `${project}/eventdeliveries/${uid}/deliveryattempts`,
      );
      if (!attempt) continue;
      const { status, http_status: answer, error, duration_ms: ms, number } = attempt;
      const again = status || next === null ? '' : `, again at ${timeOfDay(Date.parse(next))}`;
      const text = `${event.event_type ?? 'event'} to ${endpoint.name}: ${answer ?? error} in ${ms} ms, attempt ${number}${again}`;
      const atMs = Date.parse(attempt.requested_at);
      if (status) add(atMs, 'green', 'delivered', text);
      else add(atMs, 'red', 'failed', text);
    }
    for (const line of lines.slice(0, LINES_MAX)) print(line);
    if (lines.length > LINES_MAX) print(`  … and ${lines.length - LINES_MAX} more in this second`);
  }

  await poll(true);
  void (async () => {
    while (!signal.aborted) {
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted)
        await poll(false).catch(
          (error: unknown) => signal.aborted || log.warn({ error }, 'The API could not be read.'),
        );
    }
  })();
}

/**
 * Returns a function that returns the rows that are new or changed since its last call, oldest
 * first.
 */
function changes<Row>(keyOf: (row: Row) => string): (rows: readonly Row[]) => Row[] {
  let known = new Set<string>();
  return (rows) => {
    const changed = rows.filter((row) => !known.has(keyOf(row)));
    known = new Set(rows.map(keyOf));
    return changed.reverse();
  };
}
