import type {} from 'ses';

// A function sees the language and nothing else. What is not in this list is taken away, so that a global which a newer Node or SES
// adds is not there until somebody has decided that it may be. Left out on purpose: everything that makes memory outside the
// heap (ArrayBuffer and what views it, TextEncoder), everything that makes code (eval, Compartment), Promise, because nothing
// here can wait, and harden and lockdown, which are of no use to a function.
const LANGUAGE = [
  ...['globalThis', 'Infinity', 'NaN', 'undefined', 'isFinite', 'isNaN', 'parseFloat', 'parseInt'],
  ...['decodeURI', 'decodeURIComponent', 'encodeURI', 'encodeURIComponent', 'escape', 'unescape'],
  ...['Object', 'Array', 'String', 'Number', 'Boolean', 'BigInt', 'Symbol', 'Function', 'RegExp', 'Date', 'Math', 'JSON', 'Reflect'],
  ...['Map', 'Set', 'WeakMap', 'WeakSet', 'Proxy', 'Iterator'],
  ...['Error', 'AggregateError', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError'],
  'console',
];

/**
 * Makes the compartment of one function. Its global object is frozen, and so is all that lockdown() has frozen: nothing that a call
 * does to it can be seen by another call.
 */
export function makeCompartment(console: object): Compartment {
  // Date and Math of a compartment throw when asked for the time or a random number. These here are those of the host: frozen too,
  // and the constructors of their functions are as inert as all others.
  const compartment = new Compartment({ Date, Math, console });
  const globals = compartment.globalThis as Record<PropertyKey, unknown>;
  // `x instanceof Function` works; calling it throws.
  globals['Function'] = Function.prototype.constructor;
  removeAllBut(LANGUAGE, globals);
  Object.freeze(globals);
  return compartment;
}

/**
 * Takes away the one function of the language that makes promises without the word `async`, and with them a way to Promise. Call before
 * lockdown().
 */
export function removeFromAsync(): void {
  Reflect.deleteProperty(Array, 'fromAsync');
}

/**
 * Takes from the global object of the process what Node put there. A function cannot reach it; should it ever, it finds less.
 */
export function stripHostGlobals(): void {
  removeAllBut([...LANGUAGE, 'Compartment'], globalThis);
}

function removeAllBut(kept: readonly string[], globals: object): void {
  for (const name of Object.getOwnPropertyNames(globals)) {
    if (!kept.includes(name)) Reflect.deleteProperty(globals, name);
  }
}

const ABSENT = [
  ...['require', 'module', 'exports', 'process', 'global', 'Buffer', 'fetch', 'crypto', 'performance', 'structuredClone', 'eval'],
  ...['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'Promise', 'URL', 'URLSearchParams', 'atob', 'btoa', 'Intl'],
  ...['TextEncoder', 'TextDecoder', 'ArrayBuffer', 'SharedArrayBuffer', 'DataView', 'Uint8Array', 'WebAssembly', 'Atomics'],
];

/**
 * What to tell an author whose function used a global that is everywhere else; undefined when the message of the error names none. In a
 * compartment a name that nobody has declared is undefined when it is read, so the error is about the use.
 */
export function fixForAbsent(message: string): string | undefined {
  const name = /^(\w+) is not (?:defined|a function|a constructor)$/.exec(message)?.[1];
  if (name === undefined || !ABSENT.includes(name)) return undefined;
  return `A transform sees its payload and the language alone: there is no ${name}. Do without it.`;
}
