import type { Rejection } from '../validate/reject-codes.js';
import type { Decoded, DecodedMessage } from './text.js';

/** The text may be longer than the bytes that it was decoded from. */
export function bounded(decoded: Decoded, maxBytes: number): Decoded {
  return typeof decoded === 'string' ? (sizeProblem(decoded.length, maxBytes) ?? decoded) : decoded;
}

/** Several texts are bounded together. */
export function allBounded(texts: readonly string[], maxBytes: number): DecodedMessage {
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  return (length > 0 ? sizeProblem(length, maxBytes) : undefined) ?? texts;
}

/** Rejects with `empty` or `too_large`. */
export function sizeProblem(bytes: number, maxBytes: number): Rejection | undefined {
  if (bytes === 0)
    return {
      code: 'empty',
      reason:
        'The message is empty. A producer that deletes by writing empty messages (tombstones) needs a transform function or another topic.',
    };
  if (bytes <= maxBytes) return undefined;
  return {
    code: 'too_large',
    reason: `The message has ${bytes} bytes; ingest.max_message_bytes allows ${maxBytes}. Raise the setting, or send a reference instead of the content.`,
  };
}
