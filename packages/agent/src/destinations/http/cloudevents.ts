import { isTooDeep } from '@gateway/core/json';
import { headerValue, rawMembers, textOfHeader } from '@gateway/plugin/cloudevents';
import type { CloudEventsFormat } from '@gateway/store/config';
import type { InFlightDelivery } from '../../model/delivery.js';

const JSON_TYPE = /^[\w.-]+\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;
/** Also those that a broker's message had. */
const ATTRIBUTE_HEADER = /^(ce|cloudevents)[-_:]/;
const NAME = /^[a-z0-9]+$/;
const WRAPPED = /^\s*\{\s*"data(_base64)?"\s*:/;

interface Content {
  /** JSON text as it is stored, or bytes. */
  readonly json?: string | Buffer;
  readonly bytes?: Buffer;
  readonly type: string;
}

/**
 * The delivery with the body and headers of a CloudEvent, whose `data` has the bytes of the event.
 * Headers of the event that begin with `ce-` are its attributes, such as those that it came with.
 */
export function asCloudEvent(
  delivery: InFlightDelivery,
  format: CloudEventsFormat,
): InFlightDelivery {
  const content = contentOf(delivery);
  const attributes = attributesOf(delivery);
  const headers: Record<string, string> = {};
  for (const name in delivery.headers)
    if (!ATTRIBUTE_HEADER.test(name)) headers[name] = delivery.headers[name]!;
  if (format === 'cloudevents') {
    headers['content-type'] = 'application/cloudevents+json';
    return { ...delivery, headers, body: structured(attributes, content) };
  }
  headers['content-type'] = content.type;
  for (const [name, value] of attributes) headers[`ce-${name}`] = headerValue(value);
  return { ...delivery, headers, body: bytesOf(content) };
}

function attributesOf({
  projectId,
  eventId,
  eventType,
  occurredAtMs,
  headers,
}: InFlightDelivery): Map<string, string> {
  const attributes = new Map([
    ['specversion', '1.0'],
    ['id', eventId],
    ['source', `urn:uuid:${projectId}`],
    ['type', eventType],
    ['time', new Date(occurredAtMs).toISOString()],
  ]);
  for (const header in headers) {
    const name = header.startsWith('ce-') ? header.slice('ce-'.length) : '';
    const value = NAME.test(name) ? textOfHeader(headers[header]!) : '';
    // A function may have changed the type.
    if (value !== '' && !['type', 'specversion', 'data', 'datacontenttype'].includes(name))
      attributes.set(name, value);
  }
  return attributes;
}

function structured(attributes: Map<string, string>, { json, bytes, type }: Content): Buffer {
  const head = JSON.stringify({ ...Object.fromEntries(attributes), datacontenttype: type });
  const [member, value] = bytes
    ? ['data_base64', `"${bytes.toString('base64')}"`]
    : ['data', json!];
  return Buffer.concat([
    Buffer.from(`${head.slice(0, -1)},"${member}":`),
    Buffer.from(value as string),
    Buffer.from('}'),
  ]);
}

function bytesOf({ json, bytes, type }: Content): Buffer {
  if (bytes) return bytes;
  if (typeof json !== 'string') return json!;
  return Buffer.from(JSON_TYPE.test(type) ? json : String(JSON.parse(json)));
}

/** Unwraps data that was not an object, of an event that came as a CloudEvent. */
function contentOf({ body, headers }: InFlightDelivery): Content {
  const given = headers['content-type'] ?? '';
  const type = JSON_TYPE.test(given) ? given : 'application/json';
  const plain = { json: body, type };
  if (headers['ce-specversion'] === undefined || !WRAPPED.test(body.toString('latin1', 0, 200)))
    return plain;
  const text = body.toString();
  const members = isTooDeep(text) ? new Map<string, string>() : rawMembers(text);
  if (members.size !== 1) return plain;
  const own = headers['ce-datacontenttype'];
  const base64 = members.get('data_base64');
  if (base64?.startsWith('"'))
    return {
      bytes: Buffer.from(JSON.parse(base64) as string, 'base64'),
      type: own === undefined ? 'application/octet-stream' : textOfHeader(own),
    };
  const json = members.get('data');
  if (json === undefined) return plain;
  const isText = own !== undefined && json.startsWith('"');
  return { json, type: isText ? textOfHeader(own) : type };
}
