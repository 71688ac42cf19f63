import { types } from 'node:util';

/** The source name of a function's text, which marks its lines in a stack. */
export const SOURCE_NAME = 'transform.js';

const lines = new WeakMap<object, number>();

interface Frame {
  getScriptNameOrSourceURL(): string | null;
  getLineNumber(): number | null;
}

/** Records the line of the function on which an error was made. Call once, after lockdown(). Functions see an empty `error.stack`. */
export function rememberErrorLines(): void {
  // V8's own hook, https://v8.dev/docs/stack-trace-api; after lockdown only the host's Error has it.
  Error.prepareStackTrace = (error: object, frames: readonly Frame[]) => {
    const line = frames.find((frame) => frame.getScriptNameOrSourceURL() === SOURCE_NAME)?.getLineNumber();
    if (typeof line === 'number') lines.set(error, line);
    return '';
  };
}

/** The line of the function on which the error was made, from 1; undefined if unknown. May run code of the function. Never throws. */
export function lineOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  try {
    // V8 calls the hook when the stack is first read. The thrown value may have a getter instead.
    void (error as { stack?: unknown }).stack;
  } catch {
    // It has none.
  }
  return lines.get(error);
}

/** Returns ` on line 3`, with the leading space; an empty text when the line is unknown. */
export function onLine(line: number | string | undefined): string {
  return line === undefined ? '' : ` on line ${line}`;
}

const MAX_CHARS = 300;

/** Describes what a function threw. May run code of the function, so call it inside the deadline. Never throws. */
export function showThrown(thrown: unknown): string {
  try {
    if (typeof thrown !== 'object' || thrown === null) return `the value ${shorten(String(thrown))}`;
    // They may have any type.
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

/** The kind of a value, with its article, for a sentence. Runs no code of the function. */
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
  // No control characters for terminals and logs.
  // eslint-disable-next-line no-control-regex
  return short.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
}
