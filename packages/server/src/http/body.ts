import type { IncomingMessage } from 'node:http';
import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { nesting, NESTING_MAX, withoutExcerpt } from '@gateway/core/json';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads a JSON body of at most `limit` bytes and keeps its text: events keep their bytes, while body parsers replace invalid bytes by U+FFFD. */
export async function readBody(request: IncomingMessage, limit: number): Promise<{ value: unknown; text: string }> {
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

/** Reads a body of at most `limit` bytes. Throws `body_too_large`, `unsupported_media_type` for one that is compressed, and `bad_body` for one that is cut off. */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const tooLarge = () => new GatewayError('body_too_large', { limit });
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
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
    // The client went away or sent broken chunks: not an internal error.
    throw new GatewayError('bad_body', { reason: 'ended before it was whole' }, { cause });
  }
  if (length <= limit) return Buffer.concat(chunks);
  // Drains the rest: closing the connection now would lose the response.
  request.resume();
  throw tooLarge();
}

/** Finds the strings that Postgres cannot store: those with U+0000 or half of a surrogate pair. */
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
