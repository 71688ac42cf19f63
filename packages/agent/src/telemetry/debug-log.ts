import type { Log } from '@gateway/core/logging';
import { parseTraceparent, traceIdOf } from '@gateway/core/tracing';
import { traceField } from '@gateway/ingest/commit/debug-log';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { InFlightDelivery } from '../model/delivery.js';

/** Writes one debug line per attempt. Undefined unless the log writes debug lines. */
export type AttemptLog = ReturnType<typeof attemptLog>;

export function attemptLog(log: Log) {
  if (!log.debugging) return undefined;
  return {
    attempted(delivery: InFlightDelivery, attempt: AttemptRecord) {
      log.debug(
        {
          ...attemptFields(attempt),
          event_id: delivery.eventId,
          ...traceField(
            parseTraceparent(attempt.traceparent)?.traceId ?? traceIdOf(delivery.headers),
          ),
          attempt: attempt.number,
          status: attempt.status,
          http_status: attempt.code,
          duration_ms: Math.round(attempt.durationMs),
        },
        'A delivery attempt was made.',
      );
    },
  };
}

/** Returns the log fields of an attempt, with `trace_id` only if it has a trace context. */
export function attemptFields(attempt: AttemptRecord): Record<string, unknown> {
  return {
    project_id: attempt.projectId,
    event_delivery_id: attempt.id,
    endpoint_id: attempt.endpointId,
    ...traceField(parseTraceparent(attempt.traceparent)?.traceId),
  };
}
