import { isAscii } from 'node:buffer';

/** Text that is made piece by piece. Strings that are put together a hundred thousand times cost more to collect than to make, so it is bytes. */
export interface Text {
  bytes: Buffer;
  length: number;
}

const BYTES = 16_384;
const NEW_LINE = 10;
const ZERO = 48;
/** Larger ones are rare, and written by the engine. */
const INTEGER_MAX = 2 ** 31 - 1;
const NUMBER_BYTES_MAX = 32;

export function newText(): Text {
  return { bytes: Buffer.allocUnsafe(BYTES), length: 0 };
}

/** Gives the text as a string, and empties it for the next one. */
export function takeText(text: Text): string {
  const taken = text.bytes.subarray(0, text.length);
  text.length = 0;
  // What is all ASCII, as it mostly is, is made a string in a fraction of the time.
  return taken.toString(isAscii(taken) ? 'latin1' : 'utf8');
}

export function appendBytes(text: Text, bytes: Uint8Array): void {
  reserve(text, bytes.length);
  text.bytes.set(bytes, text.length);
  text.length += bytes.length;
}

/** Appends a number as the text format has it, and the end of its line. */
export function appendNumber(text: Text, value: number): void {
  reserve(text, NUMBER_BYTES_MAX);
  if (value >= 0 && value <= INTEGER_MAX && Number.isInteger(value)) appendInteger(text, value);
  else text.length += text.bytes.write(numberText(value), text.length, 'latin1');
  text.bytes[text.length++] = NEW_LINE;
}

/** Digits from the last one on, into a place whose length is known. */
function appendInteger(text: Text, value: number): void {
  let digits = 1;
  for (let rest = value; rest >= 10; rest = (rest / 10) | 0) digits++;
  let rest = value;
  for (let at = text.length + digits - 1; at >= text.length; at--) {
    const next = (rest / 10) | 0;
    text.bytes[at] = ZERO + rest - next * 10;
    rest = next;
  }
  text.length += digits;
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

function reserve(text: Text, bytes: number): void {
  if (text.length + bytes <= text.bytes.length) return;
  const larger = Buffer.allocUnsafe(2 * text.bytes.length + bytes);
  text.bytes.copy(larger, 0, 0, text.length);
  text.bytes = larger;
}
