import type { IncomingMessage } from 'node:http';
import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { withoutExcerpt } from '@gateway/core/json';
import { nesting, NESTING_MAX } from '@gateway/core/json';

/** A JSON body: its value, and the text that it came as. */
export interface Body {
  readonly value: unknown;
  readonly text: string;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a JSON body. Our own reading instead of a library's, because those put U+FFFD in place of invalid bytes, and an event has to keep its bytes.
 *
 * @throws GatewayError `unsupported_media_type`, `body_too_large`, `bad_body`
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Body> {
  const given = request.headers['content-type'] ?? '';
  const bytes = await readBytes(request, limit);
  if (!/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(given)) throw new GatewayError('unsupported_media_type', { given });
  if (bytes.byteLength === 0) throw new GatewayError('bad_body', { reason: 'is empty' });
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch (cause) {
    throw new GatewayError('bad_body', { reason: 'is not valid UTF-8' }, { cause });
  }
  if (nesting(text) > NESTING_MAX) throw new GatewayError('bad_body', { reason: `nests objects or arrays deeper than ${NESTING_MAX}` });
  try {
    return { value: JSON.parse(text), text };
  } catch (cause) {
    throw new GatewayError('bad_body', { reason: `is not JSON: ${withoutExcerpt(cause)}` }, { cause });
  }
}

async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const tooLarge = new GatewayError('body_too_large', { limit });
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge;
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') throw new GatewayError('unsupported_media_type', { given: `content-encoding: ${encoding}` });
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > limit) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    // Whoever sends it went away, or its chunks cannot be read: nobody hears the answer, and no fault of ours goes to the log.
    throw new GatewayError('bad_body', { reason: 'ended before it was whole' }, { cause });
  }
  if (length <= limit) return Buffer.concat(chunks);
  // The rest is read and forgotten: a cut connection would take the answer with it.
  request.resume();
  throw tooLarge;
}

/** Strings that Postgres cannot keep: U+0000 and halves of surrogate pairs, which no person means to send. */
export function unstorableStrings(value: unknown, field = ''): InvalidField[] {
  if (typeof value === 'string') {
    return !value.includes('\0') && value.isWellFormed() ? [] : [{ field, sentence: 'contains U+0000 or half of a surrogate pair' }];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const path = field === '' ? name : `${field}.${name}`;
    return [...unstorableStrings(name, path), ...unstorableStrings(member, path)];
  });
}
