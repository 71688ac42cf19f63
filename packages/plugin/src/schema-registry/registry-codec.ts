import { type Codec, type CodecInput, UndecodableError } from '../codec.js';
import { type SchemaFrame, readFrame } from './frame.js';
import { type RegisteredSchema, SchemaRegistry } from './registry.js';
import type { RegistrySettings } from './settings.js';

export interface SchemaFormat<Compiled> {
  /** Throws if the schema cannot be used. Must not take long for a hostile schema. */
  compile(schema: RegisteredSchema): Compiled;
  /**
   * Makes JSON text of the bytes after the frame.
   * @throws `UndecodableError`
   */
  decode(compiled: Compiled, frame: SchemaFrame, input: CodecInput): string;
}

/** A codec for messages that name their schema in a registry. Its errors have the name. */
export function registryCodec<Compiled>(
  settings: RegistrySettings,
  { compile, decode }: SchemaFormat<Compiled>,
): Codec {
  const registry = new SchemaRegistry(settings, compile);
  return {
    decode(input) {
      const frame = readFrame(input, settings.framing);
      const compiled = registry.get(frame.schema);
      if (compiled === undefined) return { missing: frame.schema };
      try {
        return decode(compiled, frame, input);
      } catch (cause) {
        if (!(cause instanceof UndecodableError)) throw cause;
        const message = `${cause.message} The message names the schema ${frame.schema}.`;
        throw new UndecodableError(message, { fix: cause.fix, cause });
      }
    },
    load: (name, context) => registry.load(name, context),
  };
}
