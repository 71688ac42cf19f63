import { emitSpan, type ActivatedPlugins } from '@gateway/core';
import type { AttemptRecord, NewEvent, QuarantinedMessage } from '@gateway/store';
import type { HeldDelivery } from './held-delivery.js';
import { needsMatching } from './route.js';

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
