import { PluginError } from './errors.js';
import type { Advice, CheckContext, Message, PluginLog } from './source.js';

/**
 * A codec makes JSON text of messages in another format, such as Avro. A source names it in its
 * field `codec`, beside the settings that the manifest's JSON Schema describes.
 *
 * 1. When a source is stored, its settings are validated against the schema, `check` is called, and
 *    secrets are sealed.
 * 2. A process that gets messages of the source calls `open` once.
 * 3. `decode` is called for each message, in the order of the broker. It is synchronous, and opens no
 *    connection. If it lacks a schema, it returns the name of the schema.
 * 4. Core calls `load` with this name, once at a time, and then `decode` again. Later messages of the
 *    source wait, so that none overtakes another.
 * 5. An error of `decode`, and an `UndecodableError` of `load`, is the fault of the message, which is
 *    quarantined with the reason. Any other error of `load` means that the registry is away: the
 *    messages wait, core calls `load` again after a capped back-off, and health has the reason.
 *
 * Tested by `codecConformance` of `@gateway/plugin-conformance`.
 */
export interface CodecPlugin<Settings = Record<string, unknown>> {
  /**
   * Checks within ten seconds that the settings work, such as that the registry answers. Optional.
   * @throws `PluginError` with the failure and the field to change
   */
  check?(settings: Settings, context: Pick<CheckContext, 'signal'>): Promise<Advice | void>;

  /** Prepares to decode messages of one source. Opens no connection, and must not fail. */
  open(settings: Settings, context: CodecContext): Codec;
}

export interface CodecContext {
  readonly log: PluginLog;
}

export interface Codec {
  /**
   * Makes JSON text, or names what `load` must get first. Numbers that a double cannot hold are
   * strings. Several texts are several events; a function gets them as one array.
   * @throws `UndecodableError` if the bytes are not in the format
   */
  decode(input: CodecInput): string | readonly string[] | Missing;

  /**
   * Gets what `decode` named, and keeps it for later messages. Its connections are limited to
   * `source.allowed_networks`, and each answer to 4 MiB.
   * @throws `UndecodableError` if it does not exist, or cannot be used; core remembers this for 30
   *   seconds. Another error if it cannot be read now
   */
  load?(name: string, context: { readonly signal: AbortSignal }): Promise<void>;
}

export interface CodecInput {
  /** The value of the message, as received. Not empty. */
  readonly bytes: Uint8Array;
  readonly headers: Message['headers'];
  /** `decode` may stop when its text is longer. */
  readonly maxLength: number;
}

/** The name of a schema that `load` must get before `decode` can go on. */
export interface Missing {
  readonly missing: string;
}

/**
 * The message cannot be decoded, whenever it is tried. State the schema and the reason, without the
 * content of the message.
 */
export class UndecodableError extends PluginError {
  /** For copies of this class in other packages. */
  readonly isUndecodable = true;

  constructor(message: string, options: { fix: string; cause?: unknown }) {
    super(message, options);
    this.name = 'UndecodableError';
  }
}
