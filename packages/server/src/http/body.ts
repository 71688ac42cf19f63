import type { IncomingMessage } from 'node:http';
import type { Config } from '@gateway/core/config';
import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { isTooDeep, NESTING_MAX, withoutExcerpt } from '@gateway/core/json';

/** The allowance for a body's other members than an event's data. */
const ENVELOPE_BYTES = 262_144;

/** Returns the bytes of the largest body of any route. */
export function largestBody({ ingest }: Pick<Config, 'ingest'>): number {
  return ingest.max_message_bytes + ENVELOPE_BYTES;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Throws `unsupported_media_type` unless the content type is JSON. */
export function requireJson({ headers }: IncomingMessage): void {
  const given = headers['content-type'] ?? '';
  if (!/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(given))
    throw new GatewayError('unsupported_media_type', { given });
}

/**
 * Parses JSON and keeps its text: events keep their bytes, while body parsers replace invalid bytes
 * with U+FFFD.
 */
export function parseBody(bytes: Buffer): { value: unknown; text: string } {
  if (bytes.byteLength === 0) throw new GatewayError('bad_body', { reason: 'is empty' });
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch (cause) {
    throw new GatewayError('bad_body', { reason: 'is not valid UTF-8' }, { cause });
  }
  if (isTooDeep(text))
    throw new GatewayError('bad_body', {
      reason: `nests objects or arrays deeper than ${NESTING_MAX}`,
    });
  try {
    return { value: JSON.parse(text), text };
  } catch (cause) {
    throw new GatewayError(
      'bad_body',
      { reason: `is not JSON: ${withoutExcerpt(cause)}` },
      { cause },
    );
  }
}

/**
 * Finds strings that Postgres cannot store: with U+0000 or half a surrogate pair, which JSON text
 * holds only as escapes.
 */
export function unstorableStrings(text: string, value: unknown): InvalidField[] {
  return text.includes('\\u') ? unstorable(value, '') : [];
}

function unstorable(value: unknown, field: string): InvalidField[] {
  if (typeof value === 'string') {
    return !value.includes('\0') && value.isWellFormed()
      ? []
      : [{ field, sentence: 'contains U+0000 or half of a surrogate pair' }];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const path = field === '' ? name : `${field}.${name}`;
    return [...unstorable(name, path), ...unstorable(member, path)];
  });
}
