import { UndecodableError } from '@gateway/plugin';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads the binary encoding, and never beyond its end. */
export class Reader {
  readonly #view: DataView;
  #at = 0;

  constructor(private readonly bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get left(): number {
    return this.bytes.length - this.#at;
  }

  byte(): number {
    return this.#view.getUint8(this.#take(1));
  }

  float(): number {
    return this.#view.getFloat32(this.#take(4), true);
  }

  double(): number {
    return this.#view.getFloat64(this.#take(8), true);
  }

  /** As a number if it is safe. */
  long(): number | bigint {
    let value = 0;
    let factor = 1;
    for (let count = 0; count < 7; count++) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      factor *= 128;
    }
    let large = BigInt(value);
    for (let shift = 49n; shift < 70n; shift += 7n) {
      const byte = this.byte();
      large |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, (large >> 1n) ^ -(large & 1n));
    }
    throw malformed('an integer has more than 10 bytes');
  }

  /** A length, a number of items or an index. */
  count(): number {
    const count = Number(this.long());
    if (!Number.isSafeInteger(count)) throw malformed(`a length is ${count}`);
    return count;
  }

  slice(length: number): Uint8Array {
    if (length < 0) throw malformed(`a length is ${length}`);
    const at = this.#take(length);
    return this.bytes.subarray(at, at + length);
  }

  string(): string {
    const bytes = this.slice(this.count());
    try {
      return decoder.decode(bytes);
    } catch {
      throw malformed('a string is not UTF-8');
    }
  }

  #take(count: number): number {
    const at = this.#at;
    if (count > this.left) throw malformed('it ends too early');
    this.#at = at + count;
    return at;
  }
}

export function malformed(reason: string): UndecodableError {
  return new UndecodableError(`It does not have the format of its schema: ${reason}.`, {
    fix: 'Check that the producer writes Avro with this schema.',
  });
}
