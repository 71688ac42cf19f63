import { isUtf8 } from 'node:buffer';
import type { Message } from '@gateway/plugin';

/** A larger key, or larger attributes or query of a message, are not stored. */
export const MESSAGE_PART_BYTES_MAX = 16 * 1024;

type Parts = Pick<Message, 'coordinates' | 'key' | 'attributes' | 'query'>;

/** As in an event. Filters, functions and templates see it as `message`. */
export interface WholeMessage {
  /** Base64 if it is not UTF-8. */
  readonly key: string | null;
  readonly key_encoding?: 'base64';
  /** In epoch milliseconds. */
  readonly timestamp: number;
  /** These three if the coordinates are those of a partition. */
  readonly topic?: string;
  readonly partition?: number;
  readonly offset?: number;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Names of parts that are too large to be stored. */
  readonly omitted?: readonly string[];
}

/**
 * JSON of what neither coordinates, time nor headers say of a message. Null if that is nothing, as
 * for a message of Kafka without a key.
 */
export function storedMessage({ coordinates, key, attributes, query }: Parts): string | null {
  const own = attributes && !isPlace(attributes, coordinates) ? attributes : undefined;
  if (!key && !own && !query) return null;
  const { key: text, key_encoding } = key ? keyOf(key) : {};
  const parts = [];
  const omitted = [];
  for (const [name, value] of Object.entries({ key: text, attributes: own, query })) {
    if (value === undefined) continue;
    const json = JSON.stringify(value);
    if (json.length > MESSAGE_PART_BYTES_MAX) omitted.push(name);
    else parts.push(`"${name}":${json}`);
  }
  if (key_encoding) parts.push(`"key_encoding":"${key_encoding}"`);
  if (omitted.length > 0) parts.push(`"omitted":${JSON.stringify(omitted)}`);
  return `{${parts.join(',')}}`;
}

/** Whether the attributes say only what the coordinates say. */
function isPlace(attributes: NonNullable<Parts['attributes']>, coordinates: string): boolean {
  const { topic, partition, offset } = attributes;
  if (topic === undefined || `${topic}/${partition}/${offset}` !== coordinates) return false;
  return Object.keys(attributes).length === 3;
}

function keyOf(key: Uint8Array): { readonly key: string; readonly key_encoding?: 'base64' } {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength);
  return isUtf8(bytes)
    ? { key: bytes.toString() }
    : { key: bytes.toString('base64'), key_encoding: 'base64' };
}

const PLACE = /^(.+)\/(\d+)\/(\d+)$/;

/** Undefined for an event without a source. */
export function messageOf({
  sourceId,
  coordinates,
  occurredAtMs,
  message,
}: {
  readonly sourceId: string | null;
  readonly coordinates: string;
  readonly occurredAtMs: number;
  readonly message?: string | null | undefined;
}): WholeMessage | undefined {
  if (sourceId === null) return undefined;
  const [, topic, partition, offset] = PLACE.exec(coordinates) ?? [];
  return {
    key: null,
    timestamp: occurredAtMs,
    ...(topic !== undefined && { topic, partition: Number(partition), offset: Number(offset) }),
    ...(JSON.parse(message ?? '{}') as Partial<WholeMessage>),
  };
}

/** JSON of the second argument of a function. Headers are those that its source passes on. */
export function messageArgument(
  message: WholeMessage | undefined,
  headers: Readonly<Record<string, string>>,
): string {
  return JSON.stringify({ ...message, headers: lowerCased(headers) });
}

/** Inherits nothing, so a header with the name `__proto__` is one like any other. */
function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  const lower = Object.create(null) as Record<string, string>;
  for (const name in headers) lower[name.toLowerCase()] = headers[name]!;
  return lower;
}

/** The parts of a message from which `storedMessage` made the text. */
export function partsOfStored(
  text: string | null | undefined,
): Pick<Message, 'key' | 'attributes' | 'query'> {
  const {
    key,
    key_encoding: encoding,
    attributes,
    query,
  } = JSON.parse(text ?? '{}') as Partial<WholeMessage>;
  return { key: typeof key === 'string' ? Buffer.from(key, encoding) : null, attributes, query };
}
