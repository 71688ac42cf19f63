import { setTimeout as sleep } from 'node:timers/promises';
import { sentenceOf } from '@gateway/agent/model';
import type { Log } from '@gateway/core/logging';
import type { AttemptView, DeliveryView, EventView, QuarantinedView } from './api.js';
import type { Component, Instance } from './instance.js';
import { excerpt, paint, timeOfDay } from '../output/paint.js';

const POLL_MS = 1_000;
/** Rows of each list that a poll looks at. */
const ROWS = 100;
/** Lines printed between two polls. The rest is counted. */
const LINES_MAX = 20;
const BODY_CHARS = 60;

type Colour = 'green' | 'yellow' | 'red';

/**
 * Prints a line for each delivery: those to the inbox as they arrive; all others, quarantined messages, events without deliveries and changes of the agent's
 * health from the API, once a second. What existed before is not printed.
 *
 * @param signal ends it
 */
export async function followTraffic(
  { api, inbox, setup, health }: Instance,
  { log, print, signal }: { log: Log; print: (line: string) => void; signal: AbortSignal },
): Promise<void> {
  const project = `/projects/${setup.projectId}`;
  let lines = 0;
  const tell = (atMs: number, [colour, word]: readonly [Colour, string], text: string) => {
    if (lines++ < LINES_MAX) print(`${paint('dim', timeOfDay(atMs))}  ${paint(colour, word.padEnd(11))}  ${text}`);
  };
  const newQuarantined = changes<QuarantinedView>(({ uid }) => uid);
  const newEvents = changes<EventView>(({ uid, status }) => `${uid} ${status}`);
  const newDeliveries = changes<DeliveryView>(({ uid, attempts }) => `${uid} ${attempts}`);
  const newComponents = changes<Component>(({ name, state, reason }) => `${name} ${state} ${reason}`);

  async function poll(isFirst: boolean): Promise<void> {
    if (lines > LINES_MAX) print(`  … and ${lines - LINES_MAX} more in this second`);
    lines = 0;
    const deliveries = newDeliveries(await api.list<DeliveryView>(`${project}/eventdeliveries?perPage=${ROWS}`));
    const events = newEvents(await api.list<EventView>(`${project}/events?perPage=${ROWS}`));
    const quarantined = newQuarantined(await api.list<QuarantinedView>(`${project}/quarantine?perPage=${ROWS}`));
    const components = newComponents(await health());
    if (isFirst) return;
    for (const { name, state, reason = state } of components) {
      if (state === 'ok') tell(Date.now(), ['green', 'working'], name);
      else if (state === 'down') tell(Date.now(), ['red', 'failing'], `${name}: ${reason}`);
    }
    for (const { reason, code } of quarantined) tell(Date.now(), ['red', 'quarantined'], `${code}: ${reason}`);
    for (const { uid, event_type: type, outcome } of events) {
      if (outcome !== null && outcome !== 'routed') tell(Date.now(), ['yellow', 'nobody'], `${type} ${uid}: ${sentenceOf(outcome)}`);
    }
    for (const { uid, attempts, event_metadata: event, endpoint_metadata: endpoint, next_attempt_at: next } of deliveries) {
      if (attempts === 0 || endpoint.url?.startsWith(inbox.url)) continue;
      const [attempt] = await api.list<AttemptView>(`${project}/eventdeliveries/${uid}/deliveryattempts`);
      if (!attempt) continue;
      const result = `${attempt.http_status ?? attempt.error} in ${attempt.duration_ms} ms, attempt ${attempt.number}`;
      const again = attempt.status || next === null ? '' : `, again at ${timeOfDay(Date.parse(next))}`;
      const text = `${event.event_type ?? 'event'} to ${endpoint.name}: ${result}${again}`;
      tell(Date.parse(attempt.requested_at), attempt.status ? ['green', 'delivered'] : ['red', 'failed'], text);
    }
  }

  await poll(true);
  inbox.onReceipt(({ received_at: at, headers, body, problem }) => {
    const text = `${headers['webhook-id'] ?? 'a request without webhook-id'}  ${paint('dim', excerpt(body, BODY_CHARS))}`;
    if (problem === null) tell(Date.parse(at), ['green', 'delivered'], `${text}  200, signature verified`);
    else tell(Date.parse(at), ['red', 'refused'], `${text}  401, ${problem}`);
  });
  void (async () => {
    while (!signal.aborted) {
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) await poll(false).catch((error: unknown) => signal.aborted || log.warn({ error }, 'The API could not be read.'));
    }
  })();
}

/** Returns the rows of a list that are new or changed since the last call, the oldest first. */
function changes<Row>(keyOf: (row: Row) => string): (rows: readonly Row[]) => Row[] {
  let known = new Set<string>();
  return (rows) => {
    const changed = rows.filter((row) => !known.has(keyOf(row)));
    known = new Set(rows.map(keyOf));
    return changed.reverse();
  };
}
