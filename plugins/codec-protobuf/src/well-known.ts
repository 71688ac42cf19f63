import type { ProtobufMessage } from './schema.js';
import { type ProtobufJob, scalarText, valuesOf } from './values.js';
import { malformed, utf8, Wire } from './wire.js';

type WriteMessage = (type: ProtobufMessage, bytes: Uint8Array, job: ProtobufJob) => void;
type Write = (...given: [...Parameters<WriteMessage>, inner: WriteMessage]) => void;

const MS_MIN = Date.parse('0001-01-01T00:00:00Z');
const MS_MAX = Date.parse('9999-12-31T23:59:59.999Z');

/** The last value of the field with this id. */
function last(type: ProtobufMessage, bytes: Uint8Array, id: number): Wire | undefined {
  const given = valuesOf(type, bytes).get(type.byId.get(id)!)?.at(-1);
  return given && new Wire(given.bytes);
}

/** Seconds and nanoseconds. */
function secondsOf(type: ProtobufMessage, bytes: Uint8Array): [seconds: bigint, nanos: number] {
  const seconds = BigInt.asIntN(64, last(type, bytes, 1)?.varint() ?? 0n);
  return [seconds, Number(BigInt.asIntN(32, last(type, bytes, 2)?.varint() ?? 0n))];
}

/** With 0, 3, 6 or 9 digits. */
function fraction(nanos: number): string {
  const digits = String(Math.abs(nanos))
    .padStart(9, '0')
    .replace(/(?:000){1,3}$/, '');
  return digits === '' ? '' : `.${digits}`;
}

const timestamp: Write = (type, bytes, job) => {
  const [seconds, nanos] = secondsOf(type, bytes);
  const ms = Number(seconds) * 1_000;
  if (ms < MS_MIN || ms > MS_MAX || nanos < 0 || nanos > 999_999_999)
    throw malformed('a timestamp is outside the years 1 to 9999');
  job.text += `"${new Date(ms).toISOString().slice(0, 19)}${fraction(nanos)}Z"`;
};

const duration: Write = (type, bytes, job) => {
  const [seconds, nanos] = secondsOf(type, bytes);
  const isNegative = seconds < 0n || nanos < 0;
  job.text += `"${isNegative ? '-' : ''}${seconds < 0n ? -seconds : seconds}${fraction(nanos)}s"`;
};

/** Its only field. */
const wrapped =
  (name: string): Write =>
  (type, bytes, job) => {
    job.text += scalarText(name, last(type, bytes, 1), job.numbers);
  };

const struct: Write = (type, bytes, job, writeMessage) => {
  const field = type.byId.get(1)!;
  const only: ProtobufMessage = { name: '', fields: [field], byId: new Map([[1, field]]) };
  const before = job.text.length;
  writeMessage(only, bytes, job);
  // From {"fields":{…}}.
  job.text = job.text.slice(0, before) + job.text.slice(before + field.label.length + 1, -1);
};

const value: Write = (type, bytes, job, writeMessage) => {
  for (const [field, given] of valuesOf(type, bytes)) {
    const wire = new Wire(given.at(-1)!.bytes);
    if (field.type.kind === 'message')
      return writeMessage(field.type.message, wire.slice(wire.left), job);
    if (field.type.kind === 'scalar') {
      job.text += scalarText(field.type.name, wire, job.numbers);
      return;
    }
  }
  job.text += 'null';
};

const fieldMask: Write = (type, bytes, job) => {
  const paths = valuesOf(type, bytes).get(type.byId.get(1)!) ?? [];
  job.text += JSON.stringify(paths.map((it) => utf8(it.bytes)).join(','));
};

/** https://docs.confluent.io/platform/current/schema-registry: unscaled, two's complement. */
const decimal: Write = (type, bytes, job) => {
  const wire = last(type, bytes, 1);
  const raw = wire ? wire.slice(wire.left) : new Uint8Array();
  const scale = Number(BigInt.asIntN(32, last(type, bytes, 3)?.varint() ?? 0n));
  if (scale < 0 || scale > 10_000) throw malformed(`a decimal has the scale ${scale}`);
  const unsigned = raw.length === 0 ? 0n : BigInt(`0x${Buffer.from(raw).toString('hex')}`);
  const unscaled = BigInt.asIntN(raw.length * 8, unsigned);
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0');
  const whole = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
  const text = `${unscaled < 0n ? '-' : ''}${whole}`;
  job.text += job.numbers === 'exact' ? text : `"${text}"`;
};

/** As the JSON mapping of Protobuf has them. `Any` keeps its bytes, because its type is not known. */
export const WELL_KNOWN: Readonly<Record<string, Write>> = {
  'google.protobuf.Timestamp': timestamp,
  'google.protobuf.Duration': duration,
  'google.protobuf.FieldMask': fieldMask,
  'google.protobuf.Struct': struct,
  'google.protobuf.Value': value,
  'google.protobuf.ListValue': struct,
  'google.protobuf.DoubleValue': wrapped('double'),
  'google.protobuf.FloatValue': wrapped('float'),
  'google.protobuf.Int64Value': wrapped('int64'),
  'google.protobuf.UInt64Value': wrapped('uint64'),
  'google.protobuf.Int32Value': wrapped('int32'),
  'google.protobuf.UInt32Value': wrapped('uint32'),
  'google.protobuf.BoolValue': wrapped('bool'),
  'google.protobuf.StringValue': wrapped('string'),
  'google.protobuf.BytesValue': wrapped('bytes'),
  'confluent.type.Decimal': decimal,
};
