import type { Log } from '@gateway/core/logging';
import { traceIdOf } from '@gateway/core/tracing';
import type { NewEvent } from '@gateway/store/events';
import type { QuarantinedMessage } from '@gateway/store/quarantine';

/** One line per message. Undefined unless the log writes debug lines. */
export type DebugLog = ReturnType<typeof debugLog>;

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
          ...traceField(traceIdOf(event.headers)),
        },
        'An event was accepted.',
      );
    },
    quarantined: (message: QuarantinedMessage) =>
      log.debug(quarantineFields(message), 'A message was quarantined.'),
  };
}

/** The reason is omitted, because it may quote the content. */
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

export function traceField(traceId: string | undefined): { trace_id?: string } {
  return traceId === undefined ? {} : { trace_id: traceId };
}
