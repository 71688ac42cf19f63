import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { HttpSource } from '@gateway/store/config';
import { isTooDeep } from '@gateway/core/json';
import { jsonAt, valueAt, type Located } from './location.js';

const decoder = new TextDecoder('utf-8', { fatal: true });

export interface SourceRequest extends Pick<Located, 'query'> {
  readonly request: Pick<IncomingMessage, 'headers' | 'headersDistinct'>;
  readonly body: Uint8Array;
}

export interface HttpMessage {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** The key of the nth event, or null. */
  readonly idempotencyKey: (ordinal: number) => string | null;
}

const TRACE_HEADERS = ['traceparent', 'tracestate'];

/**
 * Returns the message of a request. With an event type and no function, its body becomes the `data`
 * of an ingest message, byte for byte; a body that is not JSON is left to be rejected.
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
      const value = request.headers[name];
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
    // Two sources of a project can use the same numbers.
    return (ordinal) => `${id}:${name}${ordinal === 0 ? '' : `:${ordinal}`}`;
  }
}

/**
 * A name for these JSON values only: a single plain string, which most providers send, or a JSON
 * array. Plain strings, arrays, hashes and names with an ordinal differ in their characters.
 */
function nameOf(values: readonly string[]): string {
  const [, plain] = (values.length === 1 && /^"([\w.~-]{1,400})"$/.exec(values[0]!)) || [];
  if (plain !== undefined) return plain;
  const name = `[${values.join(',')}]`;
  return /^[\x20-\x7e]{1,400}$/.test(name) ? name : `sha256=${hash('sha256', name)}`;
}

/** Undefined if the body is not JSON in UTF-8, or nests too deeply. */
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
