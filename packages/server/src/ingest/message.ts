import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { HttpSource } from '@gateway/store/config';
import { isTooDeep } from '@gateway/core/json';
import { jsonAt, valueAt, type Located } from './location.js';
import { headerOf } from './providers.js';

const decoder = new TextDecoder('utf-8', { fatal: true });

const TRACE_HEADERS = ['traceparent', 'tracestate'];

export interface SourceRequest extends Pick<Located, 'query'> {
  readonly request: Pick<IncomingMessage, 'headers' | 'headersDistinct'>;
  readonly body: Uint8Array;
}

export interface HttpMessage {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** For the nth event, counting from 0. */
  readonly idempotencyKey: (ordinal: number) => string | null;
}

/**
 * If the source has an event type and no function, the body becomes the `data` of an ingest
 * message, byte for byte. A body that is not JSON is returned unchanged and rejected later.
 */
export function messageOf(
  { id, http, body_function: text }: HttpSource,
  { request, query, body }: SourceRequest,
): HttpMessage {
  const json = lazily(() => jsonOf(body));
  const located: Located = { headers: () => request.headersDistinct, query, json };
  const names = [...TRACE_HEADERS, ...http.forward_headers.map((name) => name.toLowerCase())];
  const headers = Object.fromEntries(
    names.flatMap((name) => {
      const value = headerOf(request.headers, name);
      return typeof value === 'string' ? [[name, value] as const] : [];
    }),
  );
  return { body: bodyOf(), headers, idempotencyKey: keys() };

  function bodyOf(): Uint8Array {
    const { event_type: fallback, event_type_location: location } = http;
    const data = text?.trim() || (fallback === null && location === null) ? undefined : json();
    if (data === undefined) return body;
    const type = (location === null ? undefined : valueAt(location, located)) ?? fallback;
    const member = type === null ? '' : `"event_type":${JSON.stringify(type)},`;
    return Buffer.from(`{${member}"data":${data}}`);
  }

  function keys(): HttpMessage['idempotencyKey'] {
    const values = http.idempotency_keys.map((location) => jsonAt(location, located));
    if (values.length === 0 || values.includes(undefined)) return () => null;
    const name = nameOf(values as string[]);
    // Two sources of a project can use the same values, so the key includes the source's id.
    return (ordinal) => `${id}:${name}${ordinal === 0 ? '' : `:${ordinal}`}`;
  }
}

/**
 * A single plain string, as most providers send, or a JSON array. Plain strings, arrays, hashes and
 * names with an ordinal differ in their characters, so they never collide.
 */
function nameOf(values: readonly string[]): string {
  const [, plain] = (values.length === 1 && /^"([\w.~-]{1,400})"$/.exec(values[0]!)) || [];
  if (plain !== undefined) return plain;
  const name = `[${values.join(',')}]`;
  return /^[\x20-\x7e]{1,400}$/.test(name) ? name : `sha256=${hash('sha256', name)}`;
}

/** Undefined if the body is not JSON in UTF-8 or is nested too deeply. */
function jsonOf(bytes: Uint8Array): string | undefined {
  try {
    const text = decoder.decode(bytes);
    if (isTooDeep(text)) return undefined;
    JSON.parse(text);
    return text;
  } catch {
    return undefined;
  }
}

function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
