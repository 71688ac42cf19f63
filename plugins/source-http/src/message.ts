import { hash } from 'node:crypto';
import type { PushContext, PushedMessage, PushRequest } from '@gateway/plugin';
import type { Connection } from './connection.js';
import { isInBody, jsonAt, queryOf, valueAt, type Located } from './location.js';
import { headerOf } from './providers.js';

const TRACE_HEADERS = ['traceparent', 'tracestate'];

/**
 * If the source has an event type and no function, the body becomes the `data` of an ingest
 * message, byte for byte. A body that is not JSON is unchanged and rejected later.
 */
export async function messageOf(
  request: PushRequest,
  connection: Omit<Connection, 'verifier' | 'custom_response'>,
  { isTransformed, json: read }: Pick<PushContext, 'isTransformed' | 'json'>,
): Promise<PushedMessage> {
  const { url, headers: given, headersDistinct, body } = request;
  const { event_type: fallback, event_type_location: location } = connection;
  const { forward_headers: forwarded, idempotency_keys: places } = connection;
  const isWrapped = !isTransformed && (fallback !== null || location !== null);
  const json = isWrapped || places.some(isInBody) ? await read() : undefined;
  const located: Located = { headers: headersDistinct, query: queryOf(url), json };
  const headers = headersOf(request, forwarded);
  const idempotencyKey = keyAt(places, located);
  const query = queryObject(request);
  if (!isWrapped || !json)
    return { headers, body, contentType: given['content-type'], query, idempotencyKey };
  const type = (location === null ? undefined : valueAt(location, located)) ?? fallback;
  const member = type === null ? '' : `"event_type":${JSON.stringify(type)},`;
  return { headers, body: Buffer.from(`{${member}"data":${json.text}}`), query, idempotencyKey };
}

/** The trace context, and the named headers. */
export function headersOf(
  { headers }: Pick<PushRequest, 'headers'>,
  forwarded: readonly string[],
): Record<string, string> {
  const names = [...TRACE_HEADERS, ...forwarded.map((name) => name.toLowerCase())];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headerOf(headers, name);
      return typeof value === 'string' ? [[name, value] as const] : [];
    }),
  );
}

export function queryObject({ url }: Pick<PushRequest, 'url'>): PushedMessage['query'] {
  const query = queryOf(url);
  return query.size === 0
    ? undefined
    : Object.fromEntries([...query.keys()].map((name) => [name, query.getAll(name).join(', ')]));
}

function keyAt(places: readonly string[], located: Located): string | undefined {
  const values = places.map((place) => jsonAt(place, located));
  return values.length === 0 || values.includes(undefined) ? undefined : nameOf(values as string[]);
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
