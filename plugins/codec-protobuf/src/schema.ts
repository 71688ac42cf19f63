import type { RegisteredSchema } from '@gateway/plugin/schema-registry';
import protobuf from 'protobufjs';
import descriptor from 'protobufjs/ext/descriptor.js';

/** A message as it is read. Messages may refer to themselves. */
export interface ProtobufMessage {
  /** Such as `google.protobuf.Timestamp`. */
  readonly name: string;
  fields: readonly ProtobufField[];
  byId: ReadonlyMap<number, ProtobufField>;
}

export interface ProtobufField {
  /** With its colon, as JSON. */
  readonly label: string;
  readonly type: FieldType;
  readonly isRepeated: boolean;
  /** The type of the keys of a map. */
  readonly keyType: string | undefined;
  /** Without it, an absent field has its default. */
  readonly hasPresence: boolean;
}

export type FieldType =
  | { readonly kind: 'scalar'; readonly name: string }
  | { readonly kind: 'enum'; readonly names: ReadonlyMap<number, string> }
  | { readonly kind: 'message'; readonly message: ProtobufMessage };

export interface ProtobufSchema {
  /** Top-level messages in the order of the file. */
  readonly messages: readonly IndexedMessage[];
  byName(name: string): ProtobufMessage | undefined;
}

export interface IndexedMessage {
  readonly type: ProtobufMessage;
  readonly nested: readonly IndexedMessage[];
}

/** A type of Confluent, which its registry knows without a reference. */
const DECIMAL = `syntax = "proto3"; package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }`;
const COMMON = Object.keys(protobuf.common).filter((it) => it.endsWith('.proto'));

/**
 * Only parses with the library: the code that it generates from a schema could be what the author of
 * the schema wants, and its decoder sets no limit.
 * @throws Error
 */
export function readSchema({ text, references }: RegisteredSchema): ProtobufSchema {
  const sources = [...references.map((it) => it.text), text];
  const { root, names } = isDescriptor(text) ? fromDescriptors(sources) : fromTexts(sources);
  root.resolveAll();
  const types = new Map<protobuf.Type, ProtobufMessage>();
  const indexed = (type: protobuf.Type): IndexedMessage => ({
    type: messageOf(type, types),
    nested: typesIn(type).map(indexed),
  });
  return {
    messages: names.map((name) => indexed(root.lookupType(name))),
    byName(name) {
      const found = root.lookup(name);
      return found instanceof protobuf.Type ? messageOf(found, types) : undefined;
    },
  };
}

/** Some clients register a descriptor in base64 instead of the text. */
function isDescriptor(text: string): boolean {
  return /^[\w+/]+={0,2}\s*$/.test(text);
}

/** `names` are the top-level messages of the last file: references may have the same package. */
interface Parsed {
  readonly root: protobuf.Root;
  readonly names: readonly string[];
}

function fromTexts(sources: readonly string[]): Parsed {
  const root = known();
  for (const source of sources) protobuf.parse(source, root, { keepCase: true });
  const own = protobuf.parse(sources.at(-1)!, new protobuf.Root(), { keepCase: true });
  const space = own.package === undefined ? own.root : own.root.lookup(own.package);
  return { root, names: typesIn(space as protobuf.Namespace).map((it) => it.fullName) };
}

function fromDescriptors(sources: readonly string[]): Parsed {
  const files = sources.map((it) =>
    descriptor.FileDescriptorProto.decode(Buffer.from(it, 'base64')).toJSON(),
  );
  const builtIn = known();
  builtIn.resolveAll();
  const { file: those } = builtIn.toDescriptor('proto3').toJSON() as { file: object[] };
  const all = descriptor.FileDescriptorSet.fromObject({ file: [...those, ...files] });
  const { package: space = '', messageType: own = [] } = files.at(-1) as {
    package?: string;
    messageType?: readonly { readonly name: string }[];
  };
  return {
    root: protobuf.Root.fromDescriptor(all as never, { keepCase: true }),
    names: own.map(({ name }) => `.${space === '' ? '' : `${space}.`}${name}`),
  };
}

/** Files that every compiler knows. */
function known(): protobuf.Root {
  const root = new protobuf.Root();
  for (const name of COMMON) root.addJSON(protobuf.common.get(name)!.nested!);
  protobuf.parse(DECIMAL, root);
  return root;
}

function typesIn(space: protobuf.NamespaceBase): protobuf.Type[] {
  return space.nestedArray.filter((it) => it instanceof protobuf.Type);
}

function messageOf(
  type: protobuf.Type,
  types: Map<protobuf.Type, ProtobufMessage>,
): ProtobufMessage {
  const known = types.get(type);
  if (known) return known;
  const name = type.fullName.replace(/^\./, '');
  const message: ProtobufMessage = { name, fields: [], byId: new Map() };
  // Before its fields, which may refer to it.
  types.set(type, message);
  const fields = type.fieldsArray.map((field) => [field.id, fieldOf(field, types)] as const);
  message.fields = fields.map(([, field]) => field);
  message.byId = new Map(fields);
  return message;
}

function fieldOf(field: protobuf.Field, types: Map<protobuf.Type, ProtobufMessage>): ProtobufField {
  const { resolvedType: resolved } = field;
  const type: FieldType =
    resolved instanceof protobuf.Enum
      ? { kind: 'enum', names: new Map(Object.entries(resolved.values).map(([k, v]) => [v, k])) }
      : resolved instanceof protobuf.Type
        ? { kind: 'message', message: messageOf(resolved, types) }
        : { kind: 'scalar', name: field.type };
  const keyType = field instanceof protobuf.MapField ? field.keyType : undefined;
  const isRepeated = field.repeated;
  return {
    label: `${JSON.stringify(field.name)}:`,
    type,
    isRepeated,
    keyType,
    hasPresence: !isRepeated && keyType === undefined && field.hasPresence,
  };
}
