import type { IncomingMessage } from 'node:http';
import type { Config } from '@gateway/core/config';
import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { isTooDeep, NESTING_MAX, withoutExcerpt } from '@gateway/core/json';

/** In a body, beyond an event's data. */
export const ENVELOPE_BYTES = 262_144;

export function largestBody({ ingest }: Pick<Config, 'ingest'>): number {
  return ingest.max_message_bytes + ENVELOPE_BYTES;
}

/** The largest body that a provider of webhooks sends, to sources of its type. */
export const PROVIDER_BYTES_MAX = 25 * 1024 * 1024;

export function largestRequest(config: Pick<Config, 'ingest'>): number {
  return Math.max(largestBody(config), PROVIDER_BYTES_MAX);
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function requireJson({ headers }: IncomingMessage): void {
  const given = headers['content-type'] ?? '';
  if (!/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(given))
    throw new GatewayError('unsupported_media_type', { given });
}

/**
 * Also returns the text, because events keep their bytes. Invalid UTF-8 is rejected, not replaced
 * with U+FFFD as body parsers do. Throws `bad_body`.
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
 * Postgres cannot store U+0000 or half of a surrogate pair. JSON text contains these only as
 * escapes.
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
