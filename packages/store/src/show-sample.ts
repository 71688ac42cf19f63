import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Meter } from '@gateway/core';
import type { RelationalSample } from './relational-sample.js';

/**
 * Shows a sample in place of the one before. Each series is cleared and set in one turn of the event loop, so that no exposition sees half of it; turns
 * are one series long, so that nothing else waits for all of them.
 */
export async function showSample(meter: Meter, sample: RelationalSample): Promise<void> {
  const { events, deliveries, attempts, projects, hidden } = sample;
  meter.clear('gateway_event_queue_total', hidden.events);
  for (const [project, source, status, n] of events) meter.set('gateway_event_queue_total', { project, source, status }, n);
  meter.clear('gateway_event_queue_backlog_seconds');
  for (const [project, source, , , age] of events)
    if (age !== null) meter.set('gateway_event_queue_backlog_seconds', { project, source }, age);
  await nextTurn();

  meter.clear('gateway_event_delivery_queue_total', hidden.deliveries);
  for (const [project, endpoint, source, eventType, status, n] of deliveries) {
    const [name, organisationId, organisation] = projects[project] ?? ['', '', ''];
    const of = { project, project_name: name, organisation_id: organisationId, organisation_name: organisation };
    meter.set('gateway_event_delivery_queue_total', { ...of, endpoint, status, event_type: eventType, source }, n);
  }
  await nextTurn();

  meter.clear('gateway_event_delivery_queue_backlog_seconds');
  for (const { project, endpoint, source, age } of oldest(sample).values())
    meter.set('gateway_event_delivery_queue_backlog_seconds', { project, endpoint, source }, age);
  await nextTurn();

  meter.clear('gateway_event_delivery_attempts_total', hidden.attempts);
  for (const [project, endpoint, status, httpStatus, n] of attempts)
    meter.set('gateway_event_delivery_attempts_total', { project, endpoint, status, http_status_code: httpStatus }, n);
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
