import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Meter, SeriesName } from '@gateway/core';
import type { RelationalSample } from './relational-sample.js';

/** Milliseconds of setting after which others have their turn. */
const SLICE_MS = 2;

/**
 * Shows a sample in place of the one before, taking turns with the work of the process: a thousand label sets take several milliseconds, and many more when
 * they are the first. An exposition that comes meanwhile sees a series as it was or as it is, and no half of it.
 */
export async function showSample(meter: Meter, sample: RelationalSample): Promise<void> {
  for (const show of [showEvents, showEventBacklogs, showDeliveries, showDeliveryBacklogs, showAttempts]) {
    const steps = show(meter, sample);
    const forget = meter.collect(() => void [...steps]);
    try {
      for (let until = performance.now() + SLICE_MS; !steps.next().done;) {
        if (performance.now() < until) continue;
        await nextTurn();
        until = performance.now() + SLICE_MS;
      }
    } finally {
      forget();
    }
    await nextTurn();
  }
}

/** Replaces one series, a label set at a step. */
type Steps = Generator<void, void, undefined>;

function* showEvents(meter: Meter, { events, hidden }: RelationalSample): Steps {
  meter.clear('gateway_event_queue_total');
  for (const [project, source, status, n] of events) yield meter.set('gateway_event_queue_total', { project, source, status }, n);
  tellHidden(meter, 'gateway_event_queue_total', hidden.events);
}

function* showEventBacklogs(meter: Meter, { events }: RelationalSample): Steps {
  meter.clear('gateway_event_queue_backlog_seconds');
  for (const [project, source, , , age] of events)
    if (age !== null) yield meter.set('gateway_event_queue_backlog_seconds', { project, source }, age);
}

function* showDeliveries(meter: Meter, { deliveries, projects, hidden }: RelationalSample): Steps {
  meter.clear('gateway_event_delivery_queue_total');
  for (const [project, endpoint, source, eventType, status, n] of deliveries) {
    const [name, organisationId, organisation] = projects[project] ?? ['', '', ''];
    const of = { project, project_name: name, organisation_id: organisationId, organisation_name: organisation };
    yield meter.set('gateway_event_delivery_queue_total', { ...of, endpoint, status, event_type: eventType, source }, n);
  }
  tellHidden(meter, 'gateway_event_delivery_queue_total', hidden.deliveries);
}

function* showDeliveryBacklogs(meter: Meter, sample: RelationalSample): Steps {
  meter.clear('gateway_event_delivery_queue_backlog_seconds');
  for (const { project, endpoint, source, age } of oldest(sample).values())
    yield meter.set('gateway_event_delivery_queue_backlog_seconds', { project, endpoint, source }, age);
}

function* showAttempts(meter: Meter, { attempts, hidden }: RelationalSample): Steps {
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
function oldest({ deliveries }: RelationalSample): Map<string, Backlog> {
  const backlogs = new Map<string, Backlog>();
  for (const [project, endpoint, source, , , , age] of deliveries) {
    if (age === null) continue;
    const key = `${project} ${endpoint} ${source}`;
    if (age > (backlogs.get(key)?.age ?? -1)) backlogs.set(key, { project, endpoint, source, age });
  }
  return backlogs;
}
