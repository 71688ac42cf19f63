/** A type as its messages are written. Named types may refer to themselves. */
export type AvroType =
  | { readonly kind: Primitive; readonly logical: Logical | undefined }
  | FixedType
  | { readonly kind: 'enum'; readonly name: string; readonly symbols: readonly string[] }
  | { readonly kind: 'array' | 'map'; readonly items: AvroType }
  | { readonly kind: 'union'; readonly branches: readonly AvroType[] }
  | RecordType;

interface FixedType {
  readonly kind: 'fixed';
  readonly name: string;
  readonly size: number;
  readonly logical: Logical | undefined;
}

interface RecordType {
  readonly kind: 'record';
  readonly name: string;
  /** The name with its colon, as JSON. */
  fields: readonly { readonly label: string; readonly type: AvroType }[];
}

export interface Logical {
  readonly name: string;
  /** Digits after the point of a decimal. */
  readonly scale: number;
}

type Primitive = (typeof PRIMITIVES)[number];
type Attributes = Readonly<Record<string, unknown>>;
type AvroNames = Map<string, AvroType>;

const PRIMITIVES = [
  'null',
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'bytes',
  'string',
] as const;
const DEPTH_MAX = 100;
const SCALE_MAX = 10_000;

/**
 * Reads a schema: https://avro.apache.org/docs/1.12.0/specification/. No library is used, because
 * those that are kept decode as many items as a message claims to have, in any time it takes.
 * @param references schemas whose names it uses
 * @throws Error
 */
export function readSchema(text: string, references: readonly string[]): AvroType {
  const names: AvroNames = new Map();
  for (const reference of references) readType(JSON.parse(reference), '', names, 0);
  return readType(JSON.parse(text), '', names, 0);
}

function readType(schema: unknown, space: string, names: AvroNames, depth: number): AvroType {
  if (depth > DEPTH_MAX) throw new Error(`it nests more than ${DEPTH_MAX} types`);
  const inner = (it: unknown, within = space) => readType(it, within, names, depth + 1);
  if (typeof schema === 'string') return named(schema, space, names);
  if (Array.isArray(schema)) return { kind: 'union', branches: schema.map((it) => inner(it)) };
  if (typeof schema !== 'object' || schema === null)
    throw new Error('it has a type that is neither a name, a list nor an object');
  const type = schema as Attributes;
  const { type: kind } = type;
  switch (kind) {
    case 'array':
      return { kind, items: inner(type['items']) };
    case 'map':
      return { kind, items: inner(type['values']) };
    case 'record':
    case 'error': {
      const [name, within] = nameOf(type, space);
      const record: RecordType = { kind: 'record', name, fields: [] };
      // Before its fields, which may refer to it.
      names.set(name, record);
      record.fields = listOf(type['fields'], `the record ${name} has no fields`).map((it) => {
        const field = (it ?? {}) as Attributes;
        const label = `${JSON.stringify(textOf(field['name'], 'a field'))}:`;
        return { label, type: inner(field['type'], within) };
      });
      return record;
    }
    case 'enum': {
      const [name] = nameOf(type, space);
      const symbols = listOf(type['symbols'], `the enum ${name} has no symbols`).map(String);
      return declared({ kind, name, symbols }, names);
    }
    case 'fixed': {
      const [name] = nameOf(type, space);
      const size = Number(type['size']);
      if (!Number.isSafeInteger(size) || size < 0) throw new Error(`the fixed ${name} has no size`);
      return declared({ kind, name, size, logical: logicalOf(type) }, names);
    }
  }
  // A type may stand in an object of its own.
  return isPrimitive(kind) ? { kind, logical: logicalOf(type) } : inner(kind);
}

function isPrimitive(kind: unknown): kind is Primitive {
  return PRIMITIVES.some((it) => it === kind);
}

function named(name: string, space: string, names: AvroNames): AvroType {
  if (isPrimitive(name)) return { kind: name, logical: undefined };
  const isFull = name.includes('.') || space === '';
  const type = names.get(isFull ? name : `${space}.${name}`) ?? names.get(name);
  if (type) return type;
  throw new Error(
    `it uses the type ${name.slice(0, 200)}, which neither it nor its references declare`,
  );
}

/** The full name, and the namespace of the names inside. */
function nameOf({ name, namespace }: Attributes, space: string): [name: string, space: string] {
  const own = textOf(name, 'a type');
  if (own.includes('.')) return [own, own.slice(0, own.lastIndexOf('.'))];
  const within = typeof namespace === 'string' ? namespace : space;
  return [within === '' ? own : `${within}.${own}`, within];
}

function declared<Type extends AvroType & { readonly name: string }>(
  type: Type,
  names: AvroNames,
): Type {
  names.set(type.name, type);
  return type;
}

/** An invalid one is ignored, as the specification says. */
function logicalOf({ logicalType: name, scale = 0 }: Attributes): Logical | undefined {
  if (typeof name !== 'string') return undefined;
  const places = Number(scale);
  const isScale = Number.isSafeInteger(places) && places >= 0 && places <= SCALE_MAX;
  return isScale ? { name, scale: places } : undefined;
}

function listOf(value: unknown, otherwise: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new Error(otherwise);
}

function textOf(value: unknown, what: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new Error(`${what} has no name`);
}
