/**
 * A schemaless protobuf message: values by field number.
 * https://protobuf.dev/programming-guides/encoding/
 */
export interface Fields {
  /** Length-delimited fields: texts, bytes and messages. */
  bytes(number: number): Buffer[];
  text(number: number): string;
  messages(number: number): Fields[];
  /** Integers of any width, unsigned. */
  numbers(number: number): bigint[];
  double(number: number): number | undefined;
}

/** Decodes a message. Throws a `RangeError` if it is truncated. */
export function fieldsOf(message: Buffer): Fields {
  const lengths = new Map<number, Buffer[]>();
  const numbers = new Map<number, bigint[]>();
  const doubles = new Map<number, number>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const keep = <Value>(kept: Map<number, Value[]>, number: number, value: Value) =>
    kept.set(number, [...(kept.get(number) ?? []), value]);
  while (at < message.length) {
    const key = Number(varint());
    const number = key >>> 3;
    switch (key & 7) {
      case 0:
        keep(numbers, number, varint());
        break;
      case 1:
        keep(numbers, number, message.readBigUInt64LE(at));
        doubles.set(number, message.readDoubleLE(at));
        at += 8;
        break;
      case 2: {
        const length = Number(varint());
        if (at + length > message.length) throw new RangeError(`field ${number} is cut off`);
        keep(lengths, number, message.subarray(at, at + length));
        at += length;
        break;
      }
      case 5:
        keep(numbers, number, BigInt(message.readUInt32LE(at)));
        at += 4;
        break;
      default:
        throw new RangeError(`field ${number} has the unknown wire type ${key & 7}`);
    }
  }
  return {
    bytes: (number) => lengths.get(number) ?? [],
    text: (number) => (lengths.get(number)?.at(-1) ?? Buffer.alloc(0)).toString(),
    messages: (number) => (lengths.get(number) ?? []).map(fieldsOf),
    numbers: (number) => numbers.get(number) ?? [],
    double: (number) => doubles.get(number),
  };
}
