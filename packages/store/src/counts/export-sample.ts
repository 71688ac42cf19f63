import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Meter, SeriesName } from '@gateway/core/metrics';
import type { QueueSample } from './queue-sample.js';

/** Milliseconds after which other work of the process runs. */
const SLICE_MS = 1;

/** The last export of each meter: an agent and a server in one process export one after the other. */
const lastOf = new WeakMap<Meter, Promise<void>>();

/** Replaces the exported sample in slices, since a thousand label sets take milliseconds. An exposition waits for the series being replaced. */
export function exportSample(meter: Meter, sample: QueueSample): Promise<void> {
  const exporting = (lastOf.get(meter) ?? Promise.resolve()).then(() => replaceSeries(meter, sample));
  lastOf.set(
    meter,
    exporting.catch(() => undefined),
  );
  return exporting;
}

async function replaceSeries(meter: Meter, sample: QueueSample): Promise<void> {
  for (const series of SERIES) {
    const done = replaceOne(meter, sample, series);
    const stop = meter.collect(() => done);
    try {
      await done;
    } finally {
      stop();
    }
    // A waiting exposition reads the values before the next series is cleared.
    await nextTurn();
  }
}

async function replaceOne(meter: Meter, sample: QueueSample, [name, steps, list]: (typeof SERIES)[number]): Promise<void> {
  meter.clear(name);
  const setting = steps(meter, sample);
  for (let until = performance.now() + SLICE_MS; !setting.next().done;) {
    if (performance.now() < until) continue;
    await nextTurn();
    until = performance.now() + SLICE_MS;
  }
  // Clearing the series has set it to 0.
  if (list && sample.hidden[list] > 0) meter.set('gateway_metrics_folded', { series: name }, sample.hidden[list]);
}

/** The series, how each is set, one label set per step, and its list whose counts may be summed up. */
const SERIES: readonly (readonly [SeriesName, (meter: Meter, sample: QueueSample) => Generator<void>, (keyof QueueSample['hidden'])?])[] = [
  ['gateway_event_queue_total', setEvents, 'events'],
  ['gateway_event_queue_backlog_seconds', setEventBacklogs],
  ['gateway_event_delivery_queue_total', setDeliveries, 'deliveries'],
  ['gateway_event_delivery_queue_backlog_seconds', setDeliveryBacklogs],
  ['gateway_event_delivery_attempts_total', setAttempts, 'attempts'],
];

function* setEvents(meter: Meter, { events }: QueueSample): Generator<void> {
  for (const [project, source, status, n] of events) yield meter.set('gateway_event_queue_total', { project, source, status }, n);
}

function* setEventBacklogs(meter: Meter, { events }: QueueSample): Generator<void> {
  for (const [project, source, , , age] of events)
    if (age !== null) yield meter.set('gateway_event_queue_backlog_seconds', { project, source }, age);
}

function* setDeliveries(meter: Meter, { deliveries, projects }: QueueSample): Generator<void> {
  for (const [project, endpoint, source, event_type, status, n] of deliveries) {
    const [project_name, organisation_id, organisation_name] = projects[project] ?? ['', '', ''];
    // Spreading an object of the project's labels would take several times as long.
    const labels = { project, project_name, endpoint, status, event_type, source, organisation_id, organisation_name };
    yield meter.set('gateway_event_delivery_queue_total', labels, n);
  }
}

/** The oldest unfinished delivery by endpoint and source, whatever its type and status. */
function* setDeliveryBacklogs(meter: Meter, { deliveries }: QueueSample): Generator<void> {
  const oldest = new Map<string, { labels: { project: string; endpoint: string; source: string }; age: number }>();
  for (const [project, endpoint, source, , , , age] of deliveries) {
    const key = `${project} ${endpoint} ${source}`;
    if (age !== null && age > (oldest.get(key)?.age ?? -1)) oldest.set(key, { labels: { project, endpoint, source }, age });
  }
  for (const { labels, age } of oldest.values()) yield meter.set('gateway_event_delivery_queue_backlog_seconds', labels, age);
}

function* setAttempts(meter: Meter, { attempts }: QueueSample): Generator<void> {
  for (const [project, endpoint, status, httpStatus, n] of attempts)
    yield meter.set('gateway_event_delivery_attempts_total', { project, endpoint, status, http_status_code: httpStatus }, n);
}
