import type { Log } from '@gateway/core/logging';
import { parseTraceparent, traceIdOf } from '@gateway/core/tracing';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { NewEvent } from '@gateway/store/events';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { HeldDelivery } from '../model/delivery.js';

/** One line per event, at level debug. Undefined unless the log writes debug lines. */
export type DebugLog = ReturnType<typeof debugLog>;

/** Returns a function for each kind of line; undefined when the log does not write debug lines. */
export function debugLog(log: Log) {
  if (!log.debugging) return undefined;
  return {
    accepted(event: NewEvent) {
      log.debug(
        {
          project_id: event.projectId,
          source_id: event.sourceId,
          event_id: event.id,
          outcome: event.outcome ?? 'pending',
          ...traceField(traceIdOf(JSON.parse(event.headers) as Record<string, string>)),
        },
        'An event was accepted.',
      );
    },
    quarantined: (message: QuarantinedMessage) => log.debug(quarantineFields(message), 'A message was put in quarantine.'),
    attempted(delivery: HeldDelivery, attempt: AttemptRecord) {
      log.debug(
        {
          ...attemptFields(attempt),
          event_id: delivery.eventId,
          ...traceField(parseTraceparent(attempt.traceparent)?.traceId ?? traceIdOf(delivery.headers)),
          attempt: attempt.number,
          status: attempt.status,
          http_status: attempt.httpStatus,
          duration_ms: Math.round(attempt.durationMs),
        },
        'A delivery attempt was made.',
      );
    },
  };
}

/** Identifies a quarantined message; never the reason, which may quote its content. */
export function quarantineFields(message: QuarantinedMessage): Record<string, unknown> {
  return {
    project_id: message.projectId,
    source_id: message.sourceId,
    event_id: message.id,
    coordinates: message.coordinates,
    code: message.code,
    ...traceField(traceIdOf(JSON.parse(message.headers) as Record<string, string>)),
  };
}

/** Returns the fields of a log line about an attempt. `trace_id` is left out when the attempt has no trace context. */
export function attemptFields(attempt: AttemptRecord): Record<string, unknown> {
  return {
    project_id: attempt.projectId,
    event_delivery_id: attempt.id,
    endpoint_id: attempt.endpointId,
    ...traceField(parseTraceparent(attempt.traceparent)?.traceId),
  };
}

function traceField(traceId: string | undefined): { trace_id?: string } {
  return traceId === undefined ? {} : { trace_id: traceId };
}
