import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Meter, SeriesName } from '@gateway/core/metrics';
import type { QueueSample } from './queue-sample.js';

/** Milliseconds of setting after which others have their turn. */
const SLICE_MS = 1;

/**
 * Shows a sample in place of the one before, taking turns with the work of the process: a thousand label sets take several milliseconds, and many more when
 * they are the first. An exposition that comes meanwhile waits for the series that is being shown: it sees each as it was or as it is, and no half of it.
 */
export function exportSample(meter: Meter, sample: QueueSample): Promise<void> {
  const showing = (lastOf.get(meter) ?? Promise.resolve()).then(() => show(meter, sample));
  lastOf.set(
    meter,
    showing.catch(() => undefined),
  );
  return showing;
}

/** Where two parts of the gateway share a process and its meter, one shows its sample after the other. */
const lastOf = new WeakMap<Meter, Promise<void>>();

async function show(meter: Meter, sample: QueueSample): Promise<void> {
  for (const series of [showEvents, showEventBacklogs, showDeliveries, showDeliveryBacklogs, showAttempts]) {
    const shown = inTurns(series(meter, sample));
    const forget = meter.collect(() => shown);
    try {
      await shown;
    } finally {
      forget();
    }
    // An exposition that has waited reads the values before the next series is begun.
    await nextTurn();
  }
}

async function inTurns(steps: Steps): Promise<void> {
  for (let until = performance.now() + SLICE_MS; !steps.next().done;) {
    if (performance.now() < until) continue;
    await nextTurn();
    until = performance.now() + SLICE_MS;
  }
}

/** Replaces one series, a label set at a step. */
type Steps = Generator<void, void, undefined>;

function* showEvents(meter: Meter, { events, hidden }: QueueSample): Steps {
  meter.clear('gateway_event_queue_total');
  for (const [project, source, status, n] of events) yield meter.set('gateway_event_queue_total', { project, source, status }, n);
  tellHidden(meter, 'gateway_event_queue_total', hidden.events);
}

function* showEventBacklogs(meter: Meter, { events }: QueueSample): Steps {
  meter.clear('gateway_event_queue_backlog_seconds');
  for (const [project, source, , , age] of events)
    if (age !== null) yield meter.set('gateway_event_queue_backlog_seconds', { project, source }, age);
}

function* showDeliveries(meter: Meter, { deliveries, projects, hidden }: QueueSample): Steps {
  meter.clear('gateway_event_delivery_queue_total');
  for (const [project, endpoint, source, event_type, status, n] of deliveries) {
    const [project_name, organisation_id, organisation_name] = projects[project] ?? ['', '', ''];
    // Not spread from an object of the project: that takes several times as long.
    const labels = { project, project_name, endpoint, status, event_type, source, organisation_id, organisation_name };
    yield meter.set('gateway_event_delivery_queue_total', labels, n);
  }
  tellHidden(meter, 'gateway_event_delivery_queue_total', hidden.deliveries);
}

function* showDeliveryBacklogs(meter: Meter, sample: QueueSample): Steps {
  meter.clear('gateway_event_delivery_queue_backlog_seconds');
  for (const { project, endpoint, source, age } of oldest(sample).values())
    yield meter.set('gateway_event_delivery_queue_backlog_seconds', { project, endpoint, source }, age);
}

function* showAttempts(meter: Meter, { attempts, hidden }: QueueSample): Steps {
  meter.clear('gateway_event_delivery_attempts_total');
  for (const [project, endpoint, status, httpStatus, n] of attempts)
    yield meter.set('gateway_event_delivery_attempts_total', { project, endpoint, status, http_status_code: httpStatus }, n);
  tellHidden(meter, 'gateway_event_delivery_attempts_total', hidden.attempts);
}

function tellHidden(meter: Meter, name: SeriesName, n: number): void {
  // Clearing the series has said that nothing is.
  if (n > 0) meter.set('gateway_metrics_folded', { series: name }, n);
}

interface Backlog {
  readonly project: string;
  readonly endpoint: string;
  readonly source: string;
  readonly age: number;
}

/** The oldest delivery that is not over, by endpoint and source, whatever its type and status. */
function oldest({ deliveries }: QueueSample): Map<string, Backlog> {
  const backlogs = new Map<string, Backlog>();
  for (const [project, endpoint, source, , , , age] of deliveries) {
    if (age === null) continue;
    const key = `${project} ${endpoint} ${source}`;
    if (age > (backlogs.get(key)?.age ?? -1)) backlogs.set(key, { project, endpoint, source, age });
  }
  return backlogs;
}
