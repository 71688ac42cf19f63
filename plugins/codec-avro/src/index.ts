import type { CodecPlugin } from '@gateway/plugin';
import {
  checkRegistry,
  registryCodec,
  type RegistrySettings,
} from '@gateway/plugin/schema-registry';
import { readSchema } from './schema.js';
import { type AvroJsonOptions, toJson } from './to-json.js';

interface AvroSettings extends AvroJsonOptions {
  readonly registry: RegistrySettings;
}

const plugin: CodecPlugin<AvroSettings> = {
  check: ({ registry }, context) => checkRegistry(registry, context),
  open: ({ registry, ...options }) =>
    registryCodec(registry, {
      compile: ({ text, references }) =>
        readSchema(
          text,
          references.map((it) => it.text),
        ),
      decode: (type, { rest }, { maxLength }) => toJson(type, rest, maxLength, options),
    }),
};

export default plugin;
