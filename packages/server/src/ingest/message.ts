import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isTooDeep } from '@gateway/core/json';
import type { GivenMessage } from '@gateway/ingest/message/source-message';
import type { HttpSource } from '@gateway/store/config';
import { jsonAt, valueAt, type Located } from './location.js';
import { headerOf } from './providers.js';

const TRACE_HEADERS = ['traceparent', 'tracestate'];

export interface SourceRequest extends Pick<Located, 'query'> {
  readonly request: Pick<IncomingMessage, 'headers' | 'headersDistinct'>;
}

/**
 * If the source has an event type and no function, the body becomes the `data` of an ingest
 * message, byte for byte. A body that is not JSON is unchanged and rejected later.
 */
export function messageOf(
  { id, http, body_function: bodyFunction }: HttpSource,
  { request, query }: SourceRequest,
): Required<Pick<GivenMessage, 'headers' | 'read'>> {
  const names = [...TRACE_HEADERS, ...http.forward_headers.map((name) => name.toLowerCase())];
  const headers = Object.fromEntries(
    names.flatMap((name) => {
      const value = headerOf(request.headers, name);
      return typeof value === 'string' ? [[name, value] as const] : [];
    }),
  );
  return {
    headers,
    read(text) {
      const json = lazily(() => jsonOf(text));
      const located: Located = { headers: () => request.headersDistinct, query, json };
      return { text: textOf(located) ?? text, keyOf: keys(located) };
    },
  };

  function textOf(located: Located): string | undefined {
    const { event_type: fallback, event_type_location: location } = http;
    if (bodyFunction?.trim() || (fallback === null && location === null)) return undefined;
    const data = located.json();
    if (data === undefined) return undefined;
    const type = (location === null ? undefined : valueAt(location, located)) ?? fallback;
    const member = type === null ? '' : `"event_type":${JSON.stringify(type)},`;
    return `{${member}"data":${data}}`;
  }

  function keys(located: Located): (ordinal: number) => string | null {
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

/** Without a byte order mark. Undefined if the text is not JSON or is nested too deeply. */
function jsonOf(text: string | undefined): string | undefined {
  try {
    if (text === undefined || isTooDeep(text)) return undefined;
    const json = text.startsWith('\ufeff') ? text.slice(1) : text;
    JSON.parse(json);
    return json;
  } catch {
    return undefined;
  }
}

function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
