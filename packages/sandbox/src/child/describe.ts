import { types } from 'node:util';

/** Marks a function's lines in a stack. */
export const SOURCE_NAME = 'transform.js';

const lines = new WeakMap<object, number>();

interface Frame {
  getScriptNameOrSourceURL(): string | null;
  getLineNumber(): number | null;
}

/** Makes `error.stack` empty. Call once, after `lockdown()`. */
export function rememberErrorLines(): void {
  // The V8 hook (https://v8.dev/docs/stack-trace-api). After `lockdown()`, only the host's `Error`
  // has it.
  Error.prepareStackTrace = (error: object, frames: readonly Frame[]) => {
    const line = frames
      .find((frame) => frame.getScriptNameOrSourceURL() === SOURCE_NAME)
      ?.getLineNumber();
    if (typeof line === 'number') lines.set(error, line);
    return '';
  };
}

/** Counted from 1; undefined if unknown. May run the function's code. Never throws. */
export function lineOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  try {
    // V8 calls the hook on the first read of the stack. The thrown value may have a getter instead.
    void (error as { stack?: unknown }).stack;
  } catch {
    // The line is unknown.
  }
  return lines.get(error);
}

/** ` on line 3`, with its leading space, or empty. */
export function onLine(line: number | string | undefined): string {
  return line === undefined ? '' : ` on line ${line}`;
}

const MAX_CHARS = 300;

// Created before `lockdown()`. Functions do not reach it.
const graphemes = new Intl.Segmenter();

/** May run the function's code, so call it within the deadline. Never throws. */
export function showThrown(thrown: unknown): string {
  try {
    if (typeof thrown !== 'object' || thrown === null)
      return `the value ${shorten(String(thrown))}`;
    const { name, message } = thrown as { name?: string; message?: string };
    return shorten(
      name === undefined && message === undefined
        ? 'an object'
        : `${String(name ?? 'Error')}: ${String(message ?? '')}`,
    );
  } catch {
    return 'something that cannot be shown';
  }
}

/** Empty if there is no message. May run the function's code. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    return typeof thrown === 'object' && thrown !== null
      ? shorten(String((thrown as { message?: string }).message ?? ''))
      : '';
  } catch {
    return '';
  }
}

/** With its article. Does not run the function's code. */
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

/** At most `max` UTF-16 units, without half a grapheme or HTML reference at the end. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const near = text.slice(0, max + 100);
  const { index = max } = graphemes.segment(near).containing(max) ?? {};
  const end = /&#?[0-9a-z]{0,30}$/i.exec(near.slice(0, index));
  return near.slice(0, end && /^[0-9a-z]{0,30};/i.test(near.slice(index)) ? end.index : index);
}

function shorten(text: string): string {
  const short = text.length > MAX_CHARS ? `${cut(text, MAX_CHARS)}…` : text;
  // Replace control characters, which could corrupt terminals and logs.
  // eslint-disable-next-line no-control-regex
  return short.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
}
