import { isAscii } from 'node:buffer';

const BYTES = 16_384;
const NEW_LINE = 10;
const ZERO = 48;
/** Larger integers are rare, and formatted by the engine. */
const INTEGER_MAX = 2 ** 31 - 1;
const NUMBER_BYTES_MAX = 32;

/** A growing text, as bytes: garbage collection of a hundred thousand concatenated strings costs more than creating them. */
export class Text {
  #bytes = Buffer.allocUnsafe(BYTES);
  #length = 0;

  /** Returns the text as a string and empties it. */
  take(): string {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    // Mostly it is ASCII, which converts in a fraction of the time.
    return taken.toString(isAscii(taken) ? 'latin1' : 'utf8');
  }

  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Appends a number as the text format requires, and a line break. */
  appendNumber(value: number): void {
    this.#reserve(NUMBER_BYTES_MAX);
    if (value >= 0 && value <= INTEGER_MAX && Number.isInteger(value)) this.#appendInteger(value);
    else this.#length += this.#bytes.write(numberText(value), this.#length, 'latin1');
    this.#bytes[this.#length++] = NEW_LINE;
  }

  /** Writes the digits from the last to the first. */
  #appendInteger(value: number): void {
    let digits = 1;
    for (let rest = value; rest >= 10; rest = (rest / 10) | 0) digits++;
    let rest = value;
    for (let at = this.#length + digits - 1; at >= this.#length; at--) {
      const next = (rest / 10) | 0;
      this.#bytes[at] = ZERO + rest - next * 10;
      rest = next;
    }
    this.#length += digits;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + bytes);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

function numberText(value: number): string {
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';
}
