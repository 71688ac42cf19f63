import { type CodecPlugin, UndecodableError } from '@gateway/plugin';
import {
  checkRegistry,
  registryCodec,
  type RegistrySettings,
} from '@gateway/plugin/schema-registry';

const decoder = new TextDecoder('utf-8', { fatal: true });

const plugin: CodecPlugin<{ readonly registry: RegistrySettings }> = {
  check: ({ registry }, context) => checkRegistry(registry, context),
  open: ({ registry }) =>
    registryCodec(registry, {
      compile: ({ text }) => JSON.parse(text) as unknown,
      decode: (_, { rest }) => jsonOf(rest),
    }),
};

/** As it is written, so that no digit is lost. */
function jsonOf(bytes: Uint8Array): string {
  try {
    const text = decoder.decode(bytes);
    JSON.parse(text);
    return text;
  } catch (cause) {
    throw new UndecodableError('It has no JSON text after the id of its schema.', {
      fix: 'Check that the producer writes JSON in UTF-8 with this schema.',
      cause,
    });
  }
}

export default plugin;
