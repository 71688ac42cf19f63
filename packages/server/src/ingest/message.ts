import { hash } from 'node:crypto';
import type { HttpSource } from '@gateway/store/config';
import { nesting, NESTING_MAX } from '@gateway/core/json';
import { valueAt, type Located } from './location.js';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** A request to an HTTP source. */
export interface SourceRequest extends Omit<Located, 'json'> {
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
export function messageOf({ id, http, body_function: text }: HttpSource, request: SourceRequest): HttpMessage {
  const parsed = lazily(() => jsonOf(request.body));
  const located: Located = { ...request, json: () => parsed()?.value };
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
    if (text?.trim() || (fallback === null && location === null)) return request.body;
    const json = parsed();
    if (!json) return request.body;
    const type = (location === null ? undefined : valueAt(location, located)) ?? fallback;
    const member = type === null ? '' : `"event_type":${JSON.stringify(type)},`;
    return Buffer.from(`{${member}"data":${json.text}}`);
  }

  function keys(): HttpMessage['idempotencyKey'] {
    const values = http.idempotency_keys.map((location) => valueAt(location, located));
    if (values.length === 0 || values.includes(undefined)) return () => null;
    const joined = values.join(' ');
    const name = /^[\x20-\x7e]{1,400}$/.test(joined) ? joined : hash('sha256', joined);
    // Two sources of a project may count alike.
    return (ordinal) => `${id}:${name}${ordinal === 0 ? '' : `:${ordinal}`}`;
  }
}

/** Undefined when the bytes are not JSON in UTF-8, or nest too deeply to be parsed. */
function jsonOf(bytes: Uint8Array): { readonly text: string; readonly value: unknown } | undefined {
  try {
    const text = decoder.decode(bytes);
    return nesting(text) > NESTING_MAX ? undefined : { text, value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
