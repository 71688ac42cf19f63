import type { KillableReader, ReaderOptions } from './reader-process.js';

/**
 * What the author of a source gives to the conformance suite: a broker, and what the suite must observe there or do to it.
 * Optional members are abilities: the rules of an absent one are skipped and say so.
 */
export interface SourceRig<Connection = Record<string, unknown>> {
  /**
   * `topic`: messages are in partitions, which keep their order, and the window counts per partition.
   * `queue`: readers share the messages, and the window counts per worker.
   */
  readonly shape: 'topic' | 'queue';
  /** Whether messages come in the order in which they were sent, in a topic within a partition. By default a topic does, a queue does not. */
  readonly ordered?: boolean;
  /** Bodies other than text; false if the broker cannot carry them. Both are true by default. */
  readonly bodies?: { readonly binary?: boolean; readonly empty?: boolean };
  /** False if the broker has no headers. */
  readonly headers?: boolean;
  /**
   * How long the broker, or another reader, waits for an acknowledgement before it redelivers a message, in milliseconds. Make it short in the places of
   * `open`; omit it if the broker waits as long as the reader lives.
   */
  readonly leaseMs?: number;
  /** The plugin's own settings, as made from the rows of its manifest. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Makes an empty queue or topic. Called many times, also while earlier ones are in use. */
  open(wanted: { readonly partitions: number }): Promise<Place<Connection>>;
  /** Makes one whose broker the suite may take away. */
  openBreakable?(): Promise<BreakablePlace<Connection>>;
  /**
   * The module of the plugin, `import.meta.resolve('./index.js')`, for a process that the suite kills while it reads. Or a function that starts a reader to be
   * killed, if the plugin runs elsewhere.
   */
  readonly reader?: string | ((options: ReaderOptions) => KillableReader | Promise<KillableReader>);
  /** A connection whose credentials the broker rejects, and the secrets in it. */
  readonly wrongCredentials?: { readonly connection: Connection; readonly secrets: readonly string[] };
  /** A connection to a queue or topic that does not exist. */
  readonly missing?: { readonly connection: Connection };
  /** A connection to an address that accepts connections, or packets, and never answers. */
  readonly silent?: { readonly connection: Connection };
  /** Ends everything that the rig has opened. */
  close?(): Promise<void>;
}

/** A queue or topic for one rule. */
export interface Place<Connection = Record<string, unknown>> {
  readonly connection: Connection;
  /** Sends messages, those of one partition in this order, and resolves when the broker has them. */
  send(messages: readonly SentMessage[]): Promise<void>;
  /** Messages that the broker would still deliver: never delivered, or not acknowledged. In a topic: behind the committed offset. */
  unacknowledged(): Promise<number>;
}

export interface SentMessage {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** From 0; always 0 in a queue. */
  readonly partition: number;
}

export interface BreakablePlace<Connection = Record<string, unknown>> extends Place<Connection> {
  /** Takes the broker away: open connections end, and nothing answers. */
  cut(): Promise<void>;
  /** Brings it back, with its messages. */
  heal(): Promise<void>;
}
