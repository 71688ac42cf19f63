import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { HttpSource } from '@gateway/store/config';
import { isTooDeep } from '@gateway/core/json';
import { jsonAt, valueAt, type Located } from './location.js';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** A request to an HTTP source. */
export interface SourceRequest extends Pick<Located, 'query'> {
  readonly request: Pick<IncomingMessage, 'headers' | 'headersDistinct'>;
  readonly body: Uint8Array;
}

export interface HttpMessage {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** Of the event that is made of it, or of one of several; null when the request has none. */
  readonly idempotencyKey: (ordinal: number) => string | null;
}

/** The trace of the request goes on. */
const TRACE_HEADERS = ['traceparent', 'tracestate'];

/**
 * The message of a request. With an event type and no function its body becomes the `data` of an ingest message, byte for byte; if it is no JSON it stays as it is
 * and is rejected for that.
 */
export function messageOf({ id, http, body_function: text }: HttpSource, { request, query, body }: SourceRequest): HttpMessage {
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
    // Two sources of a project may count alike.
    return (ordinal) => `${id}:${name}${ordinal === 0 ? '' : `:${ordinal}`}`;
  }
}

/**
 * A name that only these JSON values have: one plain string as it is, because most providers send one, and anything else as a JSON array. The names of the two, of
 * hashes, and those that end in an ordinal differ in their characters.
 */
function nameOf(values: readonly string[]): string {
  const [, plain] = (values.length === 1 && /^"([\w.~-]{1,400})"$/.exec(values[0]!)) || [];
  if (plain !== undefined) return plain;
  const name = `[${values.join(',')}]`;
  return /^[\x20-\x7e]{1,400}$/.test(name) ? name : `sha256=${hash('sha256', name)}`;
}

/** The text of a body; undefined when it is not JSON in UTF-8, or nests too deeply to be parsed. */
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
