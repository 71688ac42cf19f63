import { types } from 'node:util';

const MAX_CHARS = 300;

/**
 * What a function threw, in a few words. Reading it may run code of the function: call it inside the deadline. Never throws.
 */
export function showThrown(thrown: unknown): string {
  try {
    if (typeof thrown !== 'object' || thrown === null) return `the value ${shorten(String(thrown))}`;
    // Of any type at all, whatever is said here; String() makes texts of them.
    const { name, message } = thrown as { name?: string; message?: string };
    return shorten(name === undefined && message === undefined ? 'an object' : `${String(name ?? 'Error')}: ${String(message ?? '')}`);
  } catch {
    return 'something that cannot be shown';
  }
}

/** The message of an error alone, or an empty text. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    return typeof thrown === 'object' && thrown !== null ? shorten(String((thrown as { message?: string }).message ?? '')) : '';
  } catch {
    return '';
  }
}

/** What kind of value this is, with its article, for a sentence. Runs no code of the function. */
export function showKind(value: unknown): string {
  if (value === undefined) return 'nothing (undefined)';
  if (value === null) return 'null';
  if (typeof value === 'string') return 'a text';
  if (typeof value !== 'object') return `a ${typeof value}`;
  if (types.isProxy(value)) return 'a Proxy';
  if (Array.isArray(value)) return 'an array';
  if (types.isMap(value)) return 'a Map';
  if (types.isSet(value)) return 'a Set';
  if (types.isDate(value)) return 'a Date';
  return 'an object';
}

function shorten(text: string): string {
  const short = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text;
  // A message that a terminal or a log line cannot be broken with.
  // eslint-disable-next-line no-control-regex
  return short.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
}
