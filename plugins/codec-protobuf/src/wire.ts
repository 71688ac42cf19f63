import { UndecodableError } from '@gateway/plugin';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads the wire format, and never beyond its end: https://protobuf.dev/programming-guides/encoding/ */
export class Wire {
  readonly #view: DataView;
  #at = 0;

  constructor(private readonly bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get left(): number {
    return this.bytes.length - this.#at;
  }

  /** Unsigned. */
  varint(): bigint {
    let value = 0;
    let factor = 1;
    for (let count = 0; count < 7; count++) {
      const byte = this.#view.getUint8(this.#take(1));
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return BigInt(value);
      factor *= 128;
    }
    let large = BigInt(value);
    for (let shift = 49n; shift < 70n; shift += 7n) {
      const byte = this.#view.getUint8(this.#take(1));
      large |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, large);
    }
    throw malformed('an integer has more than 10 bytes');
  }

  /** The length of the next value. */
  length(): number {
    const length = this.varint();
    if (length > BigInt(this.left)) throw malformed('it ends too early');
    return Number(length);
  }

  fixed32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  fixed64(): bigint {
    return this.#view.getBigUint64(this.#take(8), true);
  }

  float(): number {
    return this.#view.getFloat32(this.#take(4), true);
  }

  double(): number {
    return this.#view.getFloat64(this.#take(8), true);
  }

  slice(length = this.length()): Uint8Array {
    const at = this.#take(length);
    return this.bytes.subarray(at, at + length);
  }

  /** The bytes of a value of this wire type. */
  value(type: number, depth = 0): Uint8Array {
    const from = this.#at;
    switch (type) {
      case 0:
        this.varint();
        break;
      case 1:
        this.#take(8);
        break;
      case 2:
        return this.slice();
      case 3:
        return this.#group(depth);
      case 5:
        this.#take(4);
        break;
      default:
        throw malformed(`there is no wire type ${type}`);
    }
    return this.bytes.subarray(from, this.#at);
  }

  /** Without its end. */
  #group(depth: number): Uint8Array {
    if (depth > 100) throw malformed('it nests more than 100 groups');
    for (const from = this.#at; ;) {
      const to = this.#at;
      const type = Number(this.varint() & 7n);
      if (type === 4) return this.bytes.subarray(from, to);
      this.value(type, depth + 1);
    }
  }

  #take(count: number): number {
    const at = this.#at;
    if (count > this.left) throw malformed('it ends too early');
    this.#at = at + count;
    return at;
  }
}

export function utf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw malformed('a string is not UTF-8');
  }
}

export function malformed(reason: string): UndecodableError {
  return new UndecodableError(`It does not have the format of its schema: ${reason}.`, {
    fix: 'Check that the producer writes Protobuf with this schema.',
  });
}
