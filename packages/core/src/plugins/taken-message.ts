import { isUint8Array } from 'node:util/types';
import type { Message } from '@gateway/plugin';
import { isPlain } from '../json/plain-text.js';
import { kindOf, readableError } from './plugin-faults.js';

const COORDINATES_MAX = 1_000;
const KEY_MAX = 400;

/** From the prototype, because getters of an instance can be overridden. */
const { buffer, byteOffset, byteLength } = Object.getOwnPropertyDescriptors(
  Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array,
);

/**
 * Copies a message from a plugin, sharing its bytes. An invalid one gives the reason, as the end of
 * "it hands over".
 */
export function takenMessage(given: unknown): Message | string {
  try {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return kindOf(given);
    const message = given as Readonly<Record<keyof Message, unknown>>;
    const { coordinates, timestamp, body, headers, key, contentType, attributes } = message;
    const { query, idempotencyKey } = message;
    const problem =
      coordinatesProblem(coordinates) ??
      (typeof timestamp === 'number'
        ? undefined
        : `timestamp is ${kindOf(timestamp)}, not a number of milliseconds`) ??
      (isUint8Array(body) ? undefined : `body is ${kindOf(body)}, not a Uint8Array of its bytes`) ??
      (isAbsent(key) || isUint8Array(key)
        ? undefined
        : `key is ${kindOf(key)}, not a Uint8Array or null`) ??
      (isAbsent(contentType) || typeof contentType === 'string'
        ? undefined
        : `contentType is ${kindOf(contentType)}, not a string`) ??
      (isAbsent(idempotencyKey) || isKey(idempotencyKey)
        ? undefined
        : `idempotencyKey is not a text of 1 to ${KEY_MAX} characters without control characters`);
    if (problem !== undefined) return `a message whose ${problem}`;
    const copied = copiedTexts('header', headers);
    if (typeof copied === 'string') return `a message whose ${copied}`;
    const copiedAttributes = isAbsent(attributes)
      ? undefined
      : copiedTexts('attribute', attributes);
    if (typeof copiedAttributes === 'string') return `a message whose ${copiedAttributes}`;
    const copiedQuery = isAbsent(query) ? undefined : copiedTexts('query parameter', query);
    if (typeof copiedQuery === 'string') return `a message whose ${copiedQuery}`;
    return {
      coordinates: coordinates as string,
      timestamp: timestamp as number,
      body: bytesOf(body as Uint8Array),
      headers: copied,
      key: isUint8Array(key) ? bytesOf(key) : (key as null | undefined),
      contentType: (contentType as string | null) ?? undefined,
      attributes: copiedAttributes,
      query: copiedQuery,
      idempotencyKey: idempotencyKey as string | null | undefined,
    };
  } catch (error) {
    return `a message that cannot be read: ${readableError(error).message.replace(/\.$/, '')}`;
  }
}

function bytesOf(body: Uint8Array): Buffer {
  const read = <T>(getter: PropertyDescriptor) => getter.get!.call(body) as T;
  return Buffer.from(read<ArrayBuffer>(buffer), read<number>(byteOffset), read<number>(byteLength));
}

function coordinatesProblem(value: unknown): string | undefined {
  if (typeof value !== 'string') return `coordinates is ${kindOf(value)}, not a string`;
  if (value === '') return 'coordinates is empty';
  if (value.length > COORDINATES_MAX)
    return `coordinates has ${value.length} characters, more than ${COORDINATES_MAX}`;
  if (!isPlain(value)) return 'coordinates contains a control character';
  return value.isWellFormed() ? undefined : 'coordinates contains half of a surrogate pair';
}

function isKey(value: unknown): boolean {
  if (typeof value !== 'string' || value === '' || value.length > KEY_MAX) return false;
  return isPlain(value) && value.isWellFormed();
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

function copiedTexts(
  what: 'header' | 'attribute' | 'query parameter',
  given: unknown,
): Record<string, string> | string {
  if (typeof given !== 'object' || given === null || Symbol.iterator in given)
    return `${what}s is ${kindOf(given)}, not an object of names and texts`;
  // Called twice for each message: entries and a filter cost several times as much.
  const texts: Record<string, string> = {};
  for (const name of Object.keys(given)) {
    const value = (given as Record<string, unknown>)[name];
    if (isAbsent(value)) continue;
    if (typeof value !== 'string')
      return `${what} "${name.slice(0, 60)}" is ${kindOf(value)}, not a string`;
    // An assignment to `__proto__` would be lost.
    if (name === '__proto__') Object.defineProperty(texts, name, { value, enumerable: true });
    else texts[name] = value;
  }
  return texts;
}
