import { own } from '../../format/text.js';

interface Reason {
  readonly label: string;
  readonly fix: string;
}

const FUNCTION = 'Correct the function of the source, then replay.';
const LESS =
  'Let the function of the source do less for this message, or raise the limit of the settings, then replay.';

/**
 * The label and instructions for each reject code. The message's own reason states what is wrong.
 */
export const REASONS: Readonly<Record<string, Reason>> = {
  empty: { label: 'Empty', fix: 'Discard it, or edit it to what was meant.' },
  too_large: {
    label: 'Too large',
    fix: 'Edit it to less and replay, or raise ingest.max_message_bytes, restart and replay.',
  },
  not_utf8: {
    label: 'Not UTF-8',
    fix: 'Give its source a function that reads message.bytes, or edit it to JSON in UTF-8. Then replay.',
  },
  not_json: {
    label: 'Not JSON',
    fix: 'Edit it to JSON, or give its source a function that makes an event of it. Then replay.',
  },
  too_deep: { label: 'Nested too deeply', fix: 'Edit it so that it nests less, then replay.' },
  invalid_message: {
    label: 'Not an ingest message',
    fix: 'Edit it so that it has event_type and data, or give its source a function that adds them. Then replay.',
  },
  unknown_event_type: {
    label: 'Unknown event type',
    fix: 'Create the event type, or edit the message or the function of its source to one that the project has. Then replay.',
  },
  invalid_transform_output: { label: 'Function output refused', fix: FUNCTION },
  transform_not_compiled: { label: 'Function does not compile', fix: FUNCTION },
  transform_no_transform: { label: 'Function is missing', fix: FUNCTION },
  transform_threw: {
    label: 'Function threw',
    fix: 'Correct the function of the source, or edit the message to what the function expects. Then replay.',
  },
  transform_timeout: { label: 'Function too slow', fix: LESS },
  transform_memory: { label: 'Function used too much memory', fix: LESS },
  transform_output_too_large: { label: 'Function returned too much', fix: LESS },
  transform_promise: {
    label: 'Function returned a promise',
    fix: `Functions cannot wait. ${FUNCTION}`,
  },
  transform_not_an_object: { label: 'Function returned no object', fix: FUNCTION },
  transform_not_json: { label: 'Function returned no JSON', fix: FUNCTION },
  transform_crashed: { label: 'Function crashed', fix: LESS },
  coordinates_reused: {
    label: 'Coordinates used before',
    fix: 'Compare it with the event of the same id. Replay it if it is another message, and discard it if it is the same.',
  },
  gateway_defect: {
    label: 'Defect of the gateway',
    fix: 'Report it, and replay with the version that corrects it.',
  },
  database_refused: { label: 'Refused by Postgres', fix: 'Edit what Postgres names, then replay.' },
};

/**
 * Returns the label and instructions for a code, or general ones for a code from a newer gateway.
 */
export function reasonOf(code: string): Reason {
  return (
    own(REASONS, code) ?? {
      label: code,
      fix: 'Edit it, or correct the function of its source. Then replay.',
    }
  );
}

/** Returns whether the source's function caused the quarantine. */
export function isOfFunction(code: string): boolean {
  return code.startsWith('transform_') || code === 'invalid_transform_output';
}
