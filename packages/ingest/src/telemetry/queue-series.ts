import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Meter } from '@gateway/core/metrics/meter';
import type { SeriesName } from '@gateway/core/metrics/series';
import { inSlices } from '@gateway/core/process';
import type { ParkedCount, QueueSample } from '@gateway/store/counts';

/**
 * The last export per meter. Each export waits for the previous one, because an agent and a server
 * in one process share the meter.
 */
const lastOf = new WeakMap<Meter, Promise<void>>();

/**
 * Replaces the exported sample in slices, because a thousand label sets take milliseconds.
 * Expositions wait until the current series is complete.
 */
export function exportSample(meter: Meter, sample: QueueSample): Promise<void> {
  const last = lastOf.get(meter) ?? Promise.resolve();
  const exporting = last.then(() => replaceSeries(meter, sample));
  lastOf.set(
    meter,
    exporting.catch(() => undefined),
  );
  return exporting;
}

async function replaceSeries(meter: Meter, sample: QueueSample): Promise<void> {
  for (const [name, steps, list] of SERIES) {
    meter.clear(name, list && sample.hidden[list]);
    const done = inSlices(steps(meter, sample));
    const stop = meter.collect(() => done);
    try {
      await done;
    } finally {
      stop();
    }
    // Let a waiting exposition read the values before the next series is cleared.
    await nextTurn();
  }
}

/**
 * Each series, with a generator that sets one label set per step and, if counts may be folded, the
 * name of their list.
 */
const SERIES: readonly (readonly [
  SeriesName,
  (meter: Meter, sample: QueueSample) => Generator<void>,
  (keyof QueueSample['hidden'])?,
])[] = [
  ['gateway_event_queue_total', setEvents, 'events'],
  ['gateway_event_queue_backlog_seconds', setEventBacklogs],
  ['gateway_event_delivery_queue_total', setDeliveries, 'deliveries'],
  ['gateway_event_delivery_queue_backlog_seconds', setDeliveryBacklogs],
  ['gateway_event_delivery_attempts_total', setAttempts, 'attempts'],
  ['gateway_parked_keys', setParked('gateway_parked_keys', 'keys'), 'parked'],
  ['gateway_parked_deliveries', setParked('gateway_parked_deliveries', 'deliveries'), 'parked'],
  ['gateway_parked_keys_backlog_seconds', setParkedBacklogs],
];

function* setEvents(meter: Meter, { events }: QueueSample): Generator<void> {
  for (const [project, source, status, n] of events)
    yield meter.set('gateway_event_queue_total', { project, source, status }, n);
}

function* setEventBacklogs(meter: Meter, { events }: QueueSample): Generator<void> {
  for (const [project, source, , , age] of events)
    if (age !== null)
      yield meter.set('gateway_event_queue_backlog_seconds', { project, source }, age);
}

function* setDeliveries(meter: Meter, { deliveries, projects }: QueueSample): Generator<void> {
  for (const [project, endpoint, source, event_type, status, n] of deliveries) {
    const [project_name, organisation_id, organisation_name] = projects[project] ?? ['', '', ''];
    // Listing the labels is several times faster than spreading an object.
    const labels = {
      project,
      project_name,
      endpoint,
      status,
      event_type,
      source,
      organisation_id,
      organisation_name,
    };
    yield meter.set('gateway_event_delivery_queue_total', labels, n);
  }
}

function* setDeliveryBacklogs(meter: Meter, { deliveries }: QueueSample): Generator<void> {
  const oldest = new Map<
    string,
    { labels: { project: string; endpoint: string; source: string }; age: number }
  >();
  for (const [project, endpoint, source, , , , age] of deliveries) {
    const key = `${project} ${endpoint} ${source}`;
    if (age !== null && age > (oldest.get(key)?.age ?? -1))
      oldest.set(key, { labels: { project, endpoint, source }, age });
  }
  for (const { labels, age } of oldest.values())
    yield meter.set('gateway_event_delivery_queue_backlog_seconds', labels, age);
}

function* setAttempts(meter: Meter, { attempts }: QueueSample): Generator<void> {
  for (const [project, endpoint, status, http_status_code, n] of attempts) {
    const labels = { project, endpoint, status, http_status_code };
    yield meter.set('gateway_event_delivery_attempts_total', labels, n);
  }
}

function setParked(
  name: 'gateway_parked_keys' | 'gateway_parked_deliveries',
  wanted: ParkedCount[2],
) {
  return function* (meter: Meter, { parked = [] }: QueueSample): Generator<void> {
    for (const [project, endpoint, status, n] of parked)
      if (status === wanted) yield meter.set(name, { project, endpoint }, n);
  };
}

function* setParkedBacklogs(meter: Meter, { parked = [] }: QueueSample): Generator<void> {
  for (const [project, endpoint, , , age] of parked)
    if (age !== null)
      yield meter.set('gateway_parked_keys_backlog_seconds', { project, endpoint }, age);
}
