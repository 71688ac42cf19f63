import { clip } from '@gateway/core/json';
/**
 * A message with such a code can never be accepted. Each code is stored with a sentence that states
 * the fix.
 */
export const rejectCodes = {
  empty: 'The message is empty.',
  too_large: 'The message is larger than ingest.max_message_bytes.',
  not_utf8: 'The message is not UTF-8 text, and its source has no transform function.',
  undecodable: 'The codec of the source cannot decode the message.',
  not_json: 'The message is not JSON.',
  too_deep: 'The message nests too deeply.',
  invalid_message: 'The message is JSON, but not an ingest message.',
  invalid_transform_output:
    'The transform function returned something that is not an ingest message.',
  unknown_event_type:
    'The project rejects events of types that it does not have (config.unknown_event_types).',
  transform_not_compiled:
    'The transform function has a syntax error or uses what a transform may not use.',
  transform_no_transform: 'The source has a function text without a function named transform.',
  transform_threw: 'The transform function threw.',
  transform_timeout: 'The transform function did not finish in time.',
  transform_memory: 'The transform function used too much memory.',
  transform_output_too_large: 'The transform function returned too much.',
  transform_promise: 'The transform function returned a promise.',
  transform_not_an_object: 'The transform function did not return an object.',
  transform_not_json: 'The transform function returned something that is not JSON.',
  transform_crashed:
    'The process that ran the transform function died three times during this message.',
  coordinates_reused:
    'Another message was accepted with the same coordinates and time, or this one with other content.',
  database_refused: 'Postgres refused the event as it is.',
  gateway_defect: 'The gateway failed to read the message because of a bug.',
} as const;

export type RejectCode = keyof typeof rejectCodes;

export interface Rejection {
  readonly code: RejectCode;
  readonly reason: string;
}

/** For an event whose values Postgres does not accept. */
export function databaseRefused(error: Error): Rejection {
  return {
    code: 'database_refused',
    reason: `Postgres refused the event as it is: ${error.message}.`,
  };
}

/**
 * A gateway defect prevents the message from being read. The reason includes the error and the
 * line.
 */
export function readingFailed(defect: unknown): Rejection {
  const { message, stack = '' } = defect instanceof Error ? defect : new Error(String(defect));
  const line = /([\w.-]+:\d+):\d+\)?$/m.exec(stack)?.[1] ?? 'an unknown line';
  const reason = `The gateway failed to read the message: ${message} (${line}). This is a bug in the gateway. Report it with the message, and replay the message once a version fixes it.`;
  return { code: 'gateway_defect', reason };
}

export function unknownEventType(eventType: string): Rejection {
  const shown = clip(eventType, 101);
  const reason = `The project has no event type ${JSON.stringify(shown)}, and rejects types that it does not have. Create the event type, then replay the message.`;
  return { code: 'unknown_event_type', reason };
}
