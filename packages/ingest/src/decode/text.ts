import type { Rejection } from '../validate/reject-codes.js';

/**
 * JSON text, other text that a function may read, or why there is none. A function also reads bytes
 * that are not UTF-8.
 */
export type Decoded = string | Rejection;

/** A codec may make several texts of a message. */
export type DecodedMessage = Decoded | readonly string[];

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Keeps any byte order mark. */
export function decodeText(body: Uint8Array): Decoded {
  try {
    return decoder.decode(body);
  } catch {
    return {
      code: 'not_utf8',
      reason:
        'The message is not valid UTF-8. Write JSON text in UTF-8, or give the source a transform function that reads message.bytes.',
    };
  }
}
