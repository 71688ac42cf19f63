import { floatText, numberText } from '@gateway/plugin/schema-registry';
import type { ProtobufField, ProtobufMessage } from './schema.js';
import { malformed, utf8, Wire } from './wire.js';

export interface ProtobufJsonOptions {
  readonly numbers: 'strings' | 'exact';
}

export interface ProtobufJob extends ProtobufJsonOptions {
  readonly maxLength: number;
  text: string;
  depth: number;
}

/** By field, in the order of the bytes. A packed field has all its values in one. */
type FieldValues = Map<ProtobufField, { readonly wireType: number; readonly bytes: Uint8Array }[]>;

export function valuesOf(type: ProtobufMessage, bytes: Uint8Array): FieldValues {
  const wire = new Wire(bytes);
  const values: FieldValues = new Map();
  while (wire.left > 0) {
    const tag = wire.varint();
    const wireType = Number(tag & 7n);
    const value = { wireType, bytes: wire.value(wireType) };
    const field = type.byId.get(Number(tag >> 3n));
    if (!field) continue;
    const before = values.get(field);
    if (before) before.push(value);
    else values.set(field, [value]);
  }
  return values;
}

/** @param wire undefined for the default */
export function scalarText(
  name: string,
  wire: Wire | undefined,
  numbers: ProtobufJsonOptions['numbers'],
): string {
  const large = (value: bigint) => (numbers === 'exact' ? String(value) : `"${value}"`);
  switch (name) {
    case 'double':
      return numberText(wire?.double() ?? 0);
    case 'float':
      return floatText(wire?.float() ?? 0);
    case 'int32':
      return String(BigInt.asIntN(32, wire?.varint() ?? 0n));
    case 'uint32':
      return String(BigInt.asUintN(32, wire?.varint() ?? 0n));
    case 'sint32':
      return String(BigInt.asIntN(32, zigzag(wire?.varint() ?? 0n)));
    case 'fixed32':
      return String(wire?.fixed32() ?? 0);
    case 'sfixed32':
      return String((wire?.fixed32() ?? 0) | 0);
    case 'int64':
      return large(BigInt.asIntN(64, wire?.varint() ?? 0n));
    case 'uint64':
      return large(wire?.varint() ?? 0n);
    case 'sint64':
      return large(zigzag(wire?.varint() ?? 0n));
    case 'fixed64':
      return large(wire?.fixed64() ?? 0n);
    case 'sfixed64':
      return large(BigInt.asIntN(64, wire?.fixed64() ?? 0n));
    case 'bool':
      return String((wire?.varint() ?? 0n) !== 0n);
    case 'string':
      return JSON.stringify(wire ? utf8(wire.slice(wire.left)) : '');
    case 'bytes':
      return `"${wire ? Buffer.from(wire.slice(wire.left)).toString('base64') : ''}"`;
    default:
      throw malformed(`the type ${name.slice(0, 100)} is unknown`);
  }
}

function zigzag(value: bigint): bigint {
  return (value >> 1n) ^ -(value & 1n);
}
