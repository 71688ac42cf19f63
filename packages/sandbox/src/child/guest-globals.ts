import { cut } from './describe.js';
import { Buffer } from 'node:buffer';
import { randomFillSync } from 'node:crypto';
import type {} from 'ses';
import { MAX_LOG_LINE_CHARS, MAX_LOG_LINES } from '../protocol/protocol.js';

const wordsOf = (list: string) => list.trim().split(/\s+/);

// All other globals are removed, even those added by a newer Node or SES. Deliberately excluded are
// allocation outside the heap (ArrayBuffer and its views, TextEncoder, TextDecoder), code
// generation (eval, Compartment), Promise, harden and lockdown.
const LANGUAGE = wordsOf(`
  globalThis Infinity NaN undefined isFinite isNaN parseFloat parseInt decodeURI
  decodeURIComponent encodeURI encodeURIComponent escape unescape Object Array String Number
  Boolean BigInt Symbol Function RegExp Date Math JSON Reflect Map Set WeakMap WeakSet Proxy
  Iterator Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError
  URIError console
`);

/** Its global object is frozen, which isolates calls from each other. */
export function makeCompartment(console: object): Compartment {
  // A compartment's own `Date` and `Math` throw when asked for the time or a random number, so use
  // the host's, which are frozen too.
  const compartment = new Compartment({ Date, Math, console });
  const globals = compartment.globalThis as Record<PropertyKey, unknown>;
  // `x instanceof Function` works, but calling `Function` throws.
  globals['Function'] = Function.prototype.constructor;
  removeAllBut(LANGUAGE, globals);
  Object.freeze(globals);
  return compartment;
}

/**
 * Removes what SES leaves to functions although it does not freeze what they return:
 * `Array.fromAsync`, the only built-in that makes promises without `async`, and the way to
 * Temporal. Replaces `Math.random`, from whose numbers a function could compute those of other
 * functions. Call before `lockdown()`. Returns the host's error constructors, to be hardened after
 * it.
 */
export function removeUntamed(): object[] {
  Reflect.deleteProperty(Array, 'fromAsync');
  Reflect.deleteProperty(Date.prototype, 'toTemporalInstant');
  const random = new Uint32Array(1024);
  let at = random.length;
  const next = (): number => {
    if (at === random.length) {
      randomFillSync(random);
      at = 0;
    }
    return random[at++]!;
  };
  Math.random = { random: () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53 }.random;
  return [Error, (globalThis as { SuppressedError?: object }).SuppressedError ?? Error];
}

const COPYING = ['filter', 'map', 'slice', 'toReversed', 'toSorted', 'with'];

/**
 * Prevents allocation outside the heap from a message's bytes: removes constructors, copying
 * methods, and access to their ArrayBuffer, whose methods SES installs permanently when loaded. A
 * function can still read, change, divide (`subarray`) and copy (`Array.from`) its bytes. Call
 * before `lockdown()`.
 */
export function removeCopying(): void {
  const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
  // Node reads the `buffer` of its own Buffers, so they keep it. No function sees a Buffer.
  Object.defineProperty(
    Buffer.prototype,
    'buffer',
    Object.getOwnPropertyDescriptor(typedArray, 'buffer')!,
  );
  for (const name of ['constructor', 'buffer', ...COPYING]) remove(name, typedArray);
  remove('constructor', Uint8Array.prototype);
}

/** A function that escapes its compartment then finds less. */
export function stripHostGlobals(): void {
  removeAllBut([...LANGUAGE, 'Compartment'], globalThis);
}

function removeAllBut(kept: readonly string[], globals: object): void {
  for (const name of Object.getOwnPropertyNames(globals)) {
    if (!kept.includes(name)) remove(name, globals);
  }
}

/** Throws if the property remains, because functions could use it. */
function remove(name: string, from: object): void {
  if (!Reflect.deleteProperty(from, name)) throw new Error(`${name} cannot be removed`);
}

const ABSENT = wordsOf(`
  require module exports process global Buffer fetch crypto performance structuredClone eval
  setTimeout setInterval setImmediate queueMicrotask Promise URL URLSearchParams atob btoa Intl
  TextEncoder TextDecoder ArrayBuffer SharedArrayBuffer DataView Uint8Array WebAssembly Atomics
`);

/**
 * For an error about a global that functions lack; undefined for others. Undeclared names are
 * undefined in a compartment.
 */
export function fixForAbsent(message: string): string | undefined {
  const name = /^(\w+) is not (?:defined|a function|a constructor)$/.exec(message)?.[1];
  const method = /\bbytes\.(\w+) is not a function$/.exec(message)?.[1];
  if (method !== undefined && COPYING.includes(method))
    return `The bytes of a message have no method ${method}: take a part of them with subarray, or an array with Array.from.`;
  if (name === undefined || !ABSENT.includes(name)) return undefined;
  return `A transform sees only its payload and the language: there is no ${name}. Remove it.`;
}

/** Collects a limited number of lines. */
export function makeGuestConsole() {
  let lines: string[] = [];
  let dropped = 0;
  const write = (...values: unknown[]): void => {
    // Further lines are counted but not formatted.
    if (lines.length >= MAX_LOG_LINES) dropped += 1;
    else lines.push(cut(values.map(show).join(' '), MAX_LOG_LINE_CHARS));
  };
  const method = () => ({ write: (...values: unknown[]) => write(...values) }).write;
  return {
    console: harden({
      log: method(),
      info: method(),
      warn: method(),
      error: method(),
      debug: method(),
      trace: method(),
    }),
    take(): string[] {
      const taken = dropped === 0 ? lines : [...lines, `(${dropped} further lines were dropped)`];
      lines = [];
      dropped = 0;
      return taken;
    },
  };
}

function show(value: unknown): string {
  if (typeof value === 'string') return cut(value, MAX_LOG_LINE_CHARS);
  if (typeof value !== 'object' || value === null) return String(value);
  try {
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    return JSON.stringify(value) ?? '(no JSON text)';
  } catch {
    return '(an object without JSON text)';
  }
}
