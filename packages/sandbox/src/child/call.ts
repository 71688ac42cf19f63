import { Buffer } from 'node:buffer';
import { types } from 'node:util';
import type { Instantiate } from './compile.js';
import { lineOf, messageOf, onLine, showKind, showThrown } from './describe.js';
import { fixForAbsent } from './guest-globals.js';
import { MAX_ITEMS, type Payload } from '../protocol/protocol.js';
import { refuse, type Refusal } from '../protocol/result.js';

type Transform = (payload: unknown, message: object) => unknown;

// The global is removed before functions run.
const Bytes = Uint8Array;

export type Returned =
  | { kind: 'object'; json: string }
  | { kind: 'array'; items: string[] }
  | { kind: 'dropped' }
  | Refusal;

/**
 * All of the function's code, including getters, traps and `toJSON`, runs during this call; only
 * promise callbacks run later. Never throws.
 */
export function call(
  instantiate: Instantiate,
  payload: Payload,
  maxOutputBytes: number,
  message?: string,
): Returned {
  const transform = findTransform(instantiate);
  if (typeof transform !== 'function') return transform;
  try {
    return read(transform(valueOf(payload), argumentOf(payload, message)), maxOutputBytes);
  } catch (error) {
    return refuseThrown('The function threw', error);
  }
}

/** JSON or, if the payload is not JSON, its text, with U+FFFD for invalid UTF-8. */
function valueOf(payload: Payload): unknown {
  const whole = typeof payload === 'string' ? payload : Buffer.from(payload).toString();
  const text = whole.startsWith('\ufeff') ? whole.slice(1) : whole;
  if (typeof payload !== 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * The second argument of a function. Its bytes are copied on first access, because a Buffer shares
 * its memory with other Buffers.
 */
function argumentOf(payload: Payload, message = '{}'): object {
  let bytes: Uint8Array | undefined;
  return Object.defineProperty(JSON.parse(message) as object, 'bytes', {
    get: () => (bytes ??= new Bytes(typeof payload === 'string' ? Buffer.from(payload) : payload)),
    configurable: true,
  });
}

/** Runs the top level of the function's text. */
function findTransform(instantiate: Instantiate): Transform | Refusal {
  let transform: unknown;
  try {
    transform = instantiate();
  } catch (error) {
    return refuseThrown('The text threw before transform could be called:', error);
  }
  if (typeof transform === 'function') return transform as Transform;
  if (transform === undefined)
    return refuse('no_transform', 'The text defines no function with the name transform.');
  return refuse(
    'no_transform',
    `In the text, transform is ${showKind(transform)}, not a function.`,
  );
}

function read(returned: unknown, maxOutputBytes: number): Returned {
  if (returned === null) return { kind: 'dropped' };
  if (typeof returned !== 'object')
    return refuseKind(`The function returned ${showKind(returned)}.`, returned);
  if (isPromise(returned)) return refuse('promise', 'The function returned a promise.');
  if (!Array.isArray(returned)) {
    const json = write(returned, 'The function returned', maxOutputBytes);
    return typeof json === 'string' ? { kind: 'object', json } : json;
  }
  // Read once, because a Proxy may return a different length each time.
  const count = returned.length;
  if (count === 0) return { kind: 'dropped' };
  if (count <= MAX_ITEMS) return readItems(returned, count, maxOutputBytes);
  return refuse(
    'output_too_large',
    `The function returned an array of ${count} items, and ${MAX_ITEMS} are allowed.`,
  );
}

function readItems(returned: readonly unknown[], count: number, maxOutputBytes: number): Returned {
  const items: string[] = [];
  let left = maxOutputBytes;
  for (let index = 0; index < count; index += 1) {
    const item = returned[index];
    const subject = `Item ${index} of the array that the function returned is`;
    if (typeof item !== 'object' || item === null || Array.isArray(item))
      return refuseKind(`${subject} ${showKind(item)}.`, item);
    if (isPromise(item)) return refuse('promise', `${subject} a promise.`);
    const json = write(item, subject, left);
    if (typeof json !== 'string') return json;
    left -= Buffer.byteLength(json);
    items.push(json);
  }
  return { kind: 'array', items };
}

function write(value: object, subject: string, maxBytes: number): string | Refusal {
  // Refuse a Map, a Set or a Date, whose JSON is never what the author meant.
  const kind = showKind(value);
  if (kind === 'a Map' || kind === 'a Set' || kind === 'a Date')
    return refuseKind(`${subject} ${kind}.`, value);
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (error) {
    return refuse(
      'not_json',
      `${subject} ${kind} that has no JSON text: ${showThrown(error)}${onLine(lineOf(error))}.`,
    );
  }
  if (json === undefined)
    return refuse('not_json', `${subject} ${kind} whose toJSON gave nothing.`);
  if (!json.startsWith('{'))
    return refuse('not_an_object', `${subject} ${kind} whose toJSON gave no object.`);
  const bytes = Buffer.byteLength(json);
  if (bytes <= maxBytes) return json;
  return refuse(
    'output_too_large',
    `${subject} ${kind} of ${bytes} bytes as JSON text, and ${maxBytes} are allowed.`,
  );
}

function isPromise(value: object): boolean {
  return types.isPromise(value) || typeof (value as { then?: unknown }).then === 'function';
}

function refuseKind(happened: string, value: unknown): Refusal {
  return value === undefined
    ? refuse(
        'not_an_object',
        happened,
        'Is a return missing? Return an object, an array of objects, or null to drop the message.',
      )
    : refuse('not_an_object', happened);
}

function refuseThrown(happened: string, error: unknown): Refusal {
  return refuse(
    'threw',
    `${happened} ${showThrown(error)}${onLine(lineOf(error))}.`,
    fixForAbsent(messageOf(error)),
  );
}
