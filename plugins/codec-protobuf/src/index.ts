import type { CodecPlugin } from '@gateway/plugin';
import {
  checkRegistry,
  type SchemaFrame,
  registryCodec,
  type RegistrySettings,
} from '@gateway/plugin/schema-registry';
import {
  type IndexedMessage,
  type ProtobufMessage,
  type ProtobufSchema,
  readSchema,
} from './schema.js';
import { toJson } from './to-json.js';
import type { ProtobufJsonOptions } from './values.js';
import { malformed, utf8, Wire } from './wire.js';

interface ProtobufSettings extends ProtobufJsonOptions {
  readonly registry: RegistrySettings;
}

const plugin: CodecPlugin<ProtobufSettings> = {
  check: ({ registry }, context) => checkRegistry(registry, context),
  open: ({ registry, ...options }) =>
    registryCodec(registry, {
      compile: readSchema,
      decode(schema, frame, { maxLength }) {
        const [type, body] =
          registry.framing === 'apicurio' ? named(schema, frame) : indexed(schema, frame);
        return toJson(type, body, maxLength, options);
      },
    }),
};

type Typed = readonly [type: ProtobufMessage, body: Uint8Array];

/**
 * Confluent writes which message of the file it is: how many indexes, and each index, from outside
 * inwards. A single zero is the first message.
 */
function indexed({ messages }: ProtobufSchema, { rest }: SchemaFrame): Typed {
  const wire = new Wire(rest);
  const index = () => {
    const value = wire.varint();
    return Number((value >> 1n) ^ -(value & 1n));
  };
  const count = index();
  let found: IndexedMessage | undefined;
  for (let i = 0; i < Math.max(1, count); i++) {
    found = (found?.nested ?? messages)[count === 0 ? 0 : index()];
    if (!found) throw malformed('the schema has no message at its index');
  }
  return [found!.type, wire.slice(wire.left)];
}

/** Apicurio writes a message with the name of the type before it. */
function named(schema: ProtobufSchema, { rest }: SchemaFrame): Typed {
  const wire = new Wire(rest);
  const reference = new Wire(wire.slice());
  const tag = reference.varint();
  if (tag !== 10n) throw malformed('the name of its type is missing');
  const name = utf8(reference.slice());
  const type = schema.messages.find(
    (it) => it.type.name === name || it.type.name.endsWith(`.${name}`),
  );
  const found = type?.type ?? schema.byName(name);
  if (!found) throw malformed('the schema does not have its type');
  return [found, wire.slice(wire.left)];
}

export default plugin;
