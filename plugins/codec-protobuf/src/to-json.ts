import { UndecodableError } from '@gateway/plugin';
import type { FieldType, ProtobufField, ProtobufMessage } from './schema.js';
import { type ProtobufJob, type ProtobufJsonOptions, scalarText, valuesOf } from './values.js';
import { WELL_KNOWN } from './well-known.js';
import { malformed, utf8, Wire } from './wire.js';

/** As Google's libraries. */
const DEPTH_MAX = 100;

/** Writes JSON text directly, so that no digit is lost, and stops at the length limit. */
export function toJson(
  type: ProtobufMessage,
  bytes: Uint8Array,
  maxLength: number,
  { numbers }: ProtobufJsonOptions,
): string {
  const job: ProtobufJob = { numbers, maxLength, text: '', depth: 0 };
  writeMessage(type, bytes, job);
  return job.text;
}

function writeMessage(type: ProtobufMessage, bytes: Uint8Array, job: ProtobufJob): void {
  if (++job.depth > DEPTH_MAX) throw malformed(`it nests more than ${DEPTH_MAX} deep`);
  const known = WELL_KNOWN[type.name];
  if (known) known(type, bytes, job, writeMessage);
  else writeFields(type, bytes, job);
  job.depth--;
}

function writeFields(type: ProtobufMessage, bytes: Uint8Array, job: ProtobufJob): void {
  const values = valuesOf(type, bytes);
  job.text += '{';
  let isFirst = true;
  for (const field of type.fields) {
    const given = values.get(field);
    if (!given && field.hasPresence) continue;
    job.text += isFirst ? field.label : `,${field.label}`;
    isFirst = false;
    writeField(field, given ?? [], job);
  }
  job.text += '}';
}

function writeField(
  { type, isRepeated, keyType }: ProtobufField,
  given: readonly { readonly wireType: number; readonly bytes: Uint8Array }[],
  job: ProtobufJob,
): void {
  limit(job);
  if (keyType !== undefined) return writeMap(keyType, type, given, job);
  if (!isRepeated) {
    // The last value counts, and messages are merged, which their bytes are one after another.
    const last =
      type.kind === 'message' ? Buffer.concat(given.map((it) => it.bytes)) : given.at(-1)?.bytes;
    if (given.length === 0) job.text += defaultOf(type, job);
    else writeValue(type, new Wire(last!), job);
    return;
  }
  job.text += '[';
  let isFirst = true;
  for (const { wireType, bytes } of given) {
    const wire = new Wire(bytes);
    const isPacked = wireType === 2 && isPackable(type);
    do {
      if (isPacked && wire.left === 0) break;
      if (!isFirst) job.text += ',';
      isFirst = false;
      writeValue(type, wire, job);
    } while (isPacked);
  }
  job.text += ']';
}

/** The last entry of a key counts. */
function writeMap(
  keyType: string,
  type: FieldType,
  given: readonly { readonly bytes: Uint8Array }[],
  job: ProtobufJob,
): void {
  const entries = new Map<string, Uint8Array | undefined>();
  for (const { bytes } of given) {
    const wire = new Wire(bytes);
    let key = keyType === 'string' ? '' : scalarText(keyType, undefined, 'exact');
    let value: Uint8Array | undefined;
    while (wire.left > 0) {
      const tag = wire.varint();
      const inner = wire.value(Number(tag & 7n));
      if (tag >> 3n === 1n)
        key = keyType === 'string' ? utf8(inner) : scalarText(keyType, new Wire(inner), 'exact');
      else if (tag >> 3n === 2n) value = inner;
    }
    entries.set(key, value);
  }
  job.text += '{';
  let isFirst = true;
  for (const [key, value] of entries) {
    job.text += `${isFirst ? '' : ','}${JSON.stringify(key)}:`;
    isFirst = false;
    if (value || type.kind === 'message')
      writeValue(type, new Wire(value ?? new Uint8Array()), job);
    else job.text += defaultOf(type, job);
  }
  job.text += '}';
}

function isPackable(type: FieldType): boolean {
  return (
    type.kind === 'enum' || (type.kind === 'scalar' && !['string', 'bytes'].includes(type.name))
  );
}

function writeValue(type: FieldType, wire: Wire, job: ProtobufJob): void {
  limit(job);
  switch (type.kind) {
    case 'message':
      return writeMessage(type.message, wire.slice(wire.left), job);
    case 'enum': {
      const value = Number(BigInt.asIntN(32, wire.varint()));
      job.text += enumText(type.names, value);
      return;
    }
    case 'scalar':
      job.text += scalarText(type.name, wire, job.numbers);
  }
}

function enumText(names: ReadonlyMap<number, string>, value: number): string {
  const name = names.get(value);
  return name === undefined ? String(value) : JSON.stringify(name);
}

function defaultOf(type: FieldType, { numbers }: ProtobufJsonOptions): string {
  if (type.kind === 'enum') return enumText(type.names, 0);
  return type.kind === 'scalar' ? scalarText(type.name, undefined, numbers) : '{}';
}

function limit({ text, maxLength }: ProtobufJob): void {
  if (text.length > maxLength)
    throw new UndecodableError(`It is longer than ${maxLength} characters as JSON.`, {
      fix: 'Send smaller messages, or raise ingest.max_message_bytes.',
    });
}
