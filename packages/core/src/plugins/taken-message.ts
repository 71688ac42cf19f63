import { isUint8Array } from 'node:util/types';
import type { Message } from '@gateway/plugin';
import { isPlain } from '../json/plain-text.js';
import { kindOf, readableError } from './plugin-faults.js';

const COORDINATES_MAX = 1_000;

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
    const { coordinates, timestamp, body, headers } = message;
    const problem =
      coordinatesProblem(coordinates) ??
      (typeof timestamp === 'number'
        ? undefined
        : `timestamp is ${kindOf(timestamp)}, not a number of milliseconds`) ??
      (isUint8Array(body) ? undefined : `body is ${kindOf(body)}, not a Uint8Array of its bytes`);
    if (problem !== undefined) return `a message whose ${problem}`;
    const copied = copiedHeaders(headers);
    if (typeof copied === 'string') return `a message whose ${copied}`;
    return {
      coordinates: coordinates as string,
      timestamp: timestamp as number,
      body: bytesOf(body as Uint8Array),
      headers: copied,
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

function copiedHeaders(headers: unknown): Record<string, string> | string {
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers)
    return `headers is ${kindOf(headers)}, not an object of names and texts`;
  const entries = Object.entries(headers as Record<string, unknown>).filter(
    ([, value]) => value !== undefined && value !== null,
  );
  const wrong = entries.find(([, value]) => typeof value !== 'string');
  if (wrong) return `header "${wrong[0].slice(0, 60)}" is ${kindOf(wrong[1])}, not a string`;
  return Object.fromEntries(entries) as Record<string, string>;
}
