import { own } from '../../format/text.js';

interface Reason {
  readonly label: string;
  readonly fix: string;
}

const FUNCTION = 'Fix the function of the source, then replay.';
const LESS =
  'Make the function of the source do less for this message, or raise its limit in the settings. Then replay.';

/**
 * The label and instructions for each reject code. The message's own reason states what is wrong.
 */
export const REASONS: Readonly<Record<string, Reason>> = {
  empty: {
    label: 'Empty',
    fix: 'Discard the message, or edit it to add the missing content. Then replay.',
  },
  too_large: {
    label: 'Too large',
    fix: 'Shorten the message, or raise ingest.max_message_bytes and restart. Then replay.',
  },
  not_utf8: {
    label: 'Not UTF-8',
    fix: 'Add a function to the source that reads message.bytes, or replace the message with JSON in UTF-8. Then replay.',
  },
  not_json: {
    label: 'Not JSON',
    fix: 'Replace the message with JSON, or add a function to the source that turns the message into an event. Then replay.',
  },
  too_deep: { label: 'Nested too deeply', fix: 'Reduce the nesting of the message, then replay.' },
  invalid_message: {
    label: 'Not an ingest message',
    fix: 'Add event_type and data to the message, or add a function to the source that sets them. Then replay.',
  },
  unknown_event_type: {
    label: 'Unknown event type',
    fix: 'Create the event type, or use an existing one in the message or the function of the source. Then replay.',
  },
  invalid_transform_output: { label: 'Invalid function output', fix: FUNCTION },
  transform_not_compiled: { label: 'Function does not compile', fix: FUNCTION },
  transform_no_transform: { label: 'Function missing', fix: FUNCTION },
  transform_threw: {
    label: 'Function threw',
    fix: 'Fix the function of the source, or edit the message to match what the function expects. Then replay.',
  },
  transform_timeout: { label: 'Function timed out', fix: LESS },
  transform_memory: { label: 'Function ran out of memory', fix: LESS },
  transform_output_too_large: { label: 'Function output too large', fix: LESS },
  transform_promise: {
    label: 'Function returned a promise',
    fix: `Functions cannot be asynchronous. ${FUNCTION}`,
  },
  transform_not_an_object: { label: 'Function did not return an object', fix: FUNCTION },
  transform_not_json: { label: 'Function did not return JSON', fix: FUNCTION },
  undecodable: {
    label: 'Not decodable',
    fix: 'Compare the codec of the source with what its producer sends, then replay the message.',
  },
  transform_crashed: { label: 'Function crashed', fix: LESS },
  coordinates_reused: {
    label: 'Duplicate coordinates',
    fix: 'Compare the message with the event of the same ID. Replay the message if they differ, and discard it if they are the same.',
  },
  gateway_defect: {
    label: 'Internal error',
    fix: 'Report the error, upgrade to a version that fixes it, then replay.',
  },
  database_refused: {
    label: 'Rejected by Postgres',
    fix: 'Edit the part of the message named in the reason, then replay.',
  },
};

/** General instructions for a code from a newer gateway. */
export function reasonOf(code: string): Reason {
  return (
    own(REASONS, code) ?? {
      label: code,
      fix: 'Edit the message or fix the function of the source. Then replay.',
    }
  );
}

export function isOfFunction(code: string): boolean {
  return code.startsWith('transform_') || code === 'invalid_transform_output';
}
