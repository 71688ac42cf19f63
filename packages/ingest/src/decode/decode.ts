import type { Message } from '@gateway/plugin';
import { readingFailed } from '../validate/reject-codes.js';
import { bounded, sizeProblem } from './bounds.js';
import { FORM, decodeForm, decodeMultipart, MULTIPART } from './form.js';
import { type Decoded, decodeText } from './text.js';

/** Synchronous where possible: a promise for each message costs as much as parsing a small one. */
type Decoder = (body: Uint8Array, contentType: string) => Decoded | Promise<Decoded>;

/** The first match decodes a message. Others, and messages without a content type, are text. */
const DECODERS: readonly { readonly contentType: RegExp; readonly decode: Decoder }[] = [
  { contentType: /^application\/([\w.-]+\+)?json\s*(;|$)/i, decode: decodeText },
  { contentType: FORM, decode: decodeForm },
  { contentType: MULTIPART, decode: decodeMultipart },
];

/** Never throws. Rejects with `empty`, `too_large` or what the decoder says. */
export function decode(
  { body, contentType }: Pick<Message, 'body' | 'contentType'>,
  maxBytes: number,
): Decoded | Promise<Decoded> {
  const refused = sizeProblem(body.byteLength, maxBytes);
  if (refused) return refused;
  if (contentType === undefined) return decodeText(body);
  const { decode: decoder = decodeText } =
    DECODERS.find((it) => it.contentType.test(contentType)) ?? {};
  try {
    const decoded = decoder(body, contentType);
    return typeof decoded === 'object' && 'then' in decoded
      ? decoded.then((text) => bounded(text, maxBytes)).catch(readingFailed)
      : bounded(decoded, maxBytes);
  } catch (defect) {
    return readingFailed(defect);
  }
}
