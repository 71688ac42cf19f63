import { emitSpan, type ActivatedPlugins } from '@gateway/core';
import type { Outcome } from '@gateway/plugin';
import type { AttemptRecord, NewEvent, QuarantinedMessage } from '@gateway/store';
import type { HeldDelivery } from './held-delivery.js';
import type { IntakeSource } from './intake-source.js';
import { needsMatching } from './route.js';

/** Counts what became of a message. */
export function countMessage({ meter }: ActivatedPlugins, source: IntakeSource, outcome: Outcome, receivedAtMs: number): void {
  const labels = { project: source.projectId, source: source.id };
  switch (outcome) {
    case 'later':
      return;
    case 'quarantined':
      meter.add('gateway_ingest_total', labels);
      meter.add('gateway_ingest_error', labels);
      return;
    case 'duplicate':
      meter.add('gateway_ingest_duplicate', labels);
      break;
    case 'dropped':
      meter.add('gateway_ingest_dropped', labels);
      break;
    case 'accepted':
      meter.observe('gateway_ingest_latency', { project: source.projectId }, (performance.now() - receivedAtMs) / 1000);
      break;
  }
  meter.add('gateway_ingest_total', labels);
  meter.add('gateway_ingest_success', labels);
}

/** Counts messages that were put in quarantine, by the code of their reason. */
export function countQuarantined({ meter }: ActivatedPlugins, messages: readonly QuarantinedMessage[]): void {
  for (const message of messages)
    meter.add('gateway_ingest_quarantined', { project: message.projectId, source: message.sourceId, reason: message.code });
}

/** Counts attempts that are on record. */
export function countRecorded({ meter, metrics }: ActivatedPlugins, attempts: readonly AttemptRecord[]): void {
  if (!metrics) return;
  for (const attempt of attempts) {
    meter.add('gateway_deliveries_attempted', { project: attempt.projectId, outcome: attempt.status });
    if (attempt.status === 'success') {
      const seconds = (attempt.requestedAtMs + attempt.durationMs - attempt.occurredAtMs) / 1000;
      meter.observe('gateway_end_to_end_latency', { project: attempt.projectId, endpoint: attempt.endpointId }, Math.max(0, seconds));
    }
  }
}

/** The spans of the way of a message. */
export interface Tracing {
  /** An event was committed. */
  created(event: NewEvent): void;
  /** A message was quarantined. */
  refused(message: QuarantinedMessage): void;
  /** A request was made. */
  attempted(delivery: HeldDelivery, attempt: AttemptRecord): void;
}

/** Undefined without an active tracer, so that the way of a message pays nothing for it. */
export function tracing({ tracer }: ActivatedPlugins): Tracing | undefined {
  if (!tracer) return undefined;
  return {
    created(event) {
      const name = needsMatching(event) ? 'dynamic.event.creation.success' : 'event.creation.success';
      emit(name, event.headers, event.occurredAtMs, {
        project: event.projectId,
        source: event.sourceId ?? '',
        event: event.id,
        event_type: event.eventType,
      });
    },
    refused(message) {
      const attributes = { project: message.projectId, source: message.sourceId, coordinates: message.coordinates, code: message.code };
      emit('event.creation.error', message.headers, message.occurredAtMs, attributes, message.reason);
    },
    attempted(delivery, attempt) {
      const attributes = {
        project: delivery.projectId,
        event: delivery.eventId,
        event_delivery: delivery.id,
        endpoint: delivery.endpointId,
        attempt: attempt.number,
        status: attempt.status,
      };
      emitSpan('meta_event_delivery', {
        attributes: attempt.httpStatus === null ? attributes : { ...attributes, 'http.response.status_code': attempt.httpStatus },
        startedAt: attempt.requestedAtMs,
        endedAt: attempt.requestedAtMs + attempt.durationMs,
        ...(attempt.error === null ? {} : { error: new Error(attempt.error) }),
        traceparent: delivery.headers['traceparent'],
      });
    },
  };
}

function emit(
  name: Parameters<typeof emitSpan>[0],
  headers: string,
  startedAt: number,
  attributes: Record<string, string>,
  error?: string,
): void {
  const { traceparent } = JSON.parse(headers) as { traceparent?: string };
  emitSpan(name, { attributes, startedAt, traceparent, ...(error === undefined ? {} : { error: new Error(error) }) });
}
