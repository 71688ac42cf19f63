import { isAscii } from 'node:buffer';

/** A growing text, as bytes: garbage collection of a hundred thousand concatenated strings costs more than creating them. */
export interface Text {
  bytes: Buffer;
  length: number;
}

const BYTES = 16_384;
const NEW_LINE = 10;
const ZERO = 48;
/** Larger integers are rare, and formatted by the engine. */
const INTEGER_MAX = 2 ** 31 - 1;
const NUMBER_BYTES_MAX = 32;

export function newText(): Text {
  return { bytes: Buffer.allocUnsafe(BYTES), length: 0 };
}

/** Returns the text as a string and empties it. */
export function takeText(text: Text): string {
  const taken = text.bytes.subarray(0, text.length);
  text.length = 0;
  // Mostly it is ASCII, which converts in a fraction of the time.
  return taken.toString(isAscii(taken) ? 'latin1' : 'utf8');
}

export function appendBytes(text: Text, bytes: Uint8Array): void {
  reserve(text, bytes.length);
  text.bytes.set(bytes, text.length);
  text.length += bytes.length;
}

/** Appends a number as the text format requires, and a line break. */
export function appendNumber(text: Text, value: number): void {
  reserve(text, NUMBER_BYTES_MAX);
  if (value >= 0 && value <= INTEGER_MAX && Number.isInteger(value)) appendInteger(text, value);
  else text.length += text.bytes.write(numberText(value), text.length, 'latin1');
  text.bytes[text.length++] = NEW_LINE;
}

/** Writes the digits from the last to the first. */
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
