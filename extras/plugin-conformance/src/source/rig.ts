import type { KillableReader, ReaderOptions } from './reader-process.js';

/**
 * The rig for a source: a broker that can be observed and disturbed. Rules that need a missing
 * optional member are skipped.
 */
export interface SourceRig<Connection = Record<string, unknown>> {
  /**
   * In a `topic`, messages are in ordered partitions, and the window applies per partition. In a
   * `queue`, readers share the messages, and the window applies per worker.
   */
  readonly shape: 'topic' | 'queue';
  /**
   * Whether messages arrive in order (per partition in a topic). Default: true for a topic, false
   * for a queue.
   */
  readonly ordered?: boolean;
  /** Whether the broker supports bodies that are not text, and empty ones. Default: true. */
  readonly bodies?: { readonly binary?: boolean; readonly empty?: boolean };
  /** False if the broker does not support headers. */
  readonly headers?: boolean;
  /**
   * How long the broker waits before it redelivers an unacknowledged message. Make it short in
   * `open`. Omit it if the broker waits as long as the reader is alive.
   */
  readonly leaseMs?: number;
  /** The plugin's settings, as the gateway builds them from its manifest. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /**
   * Creates an empty queue or topic. Called many times, including while earlier ones are in use.
   */
  open(wanted: { readonly partitions: number }): Promise<Place<Connection>>;
  /** Creates an empty queue or topic on a broker that the suite may cut off. */
  openBreakable?(): Promise<BreakablePlace<Connection>>;
  /**
   * The plugin's module (`import.meta.resolve('./index.js')`), to run in a process that is killed
   * while it reads, or a function that starts a reader elsewhere.
   */
  readonly reader?: string | ((options: ReaderOptions) => KillableReader | Promise<KillableReader>);
  /** A connection with credentials that the broker rejects, and the secrets in it. */
  readonly wrongCredentials?: {
    readonly connection: Connection;
    readonly secrets: readonly string[];
  };
  /** A connection to a queue or topic that does not exist. */
  readonly missing?: { readonly connection: Connection };
  /** A connection to an address that accepts connections or packets but never responds. */
  readonly silent?: { readonly connection: Connection };
  close?(): Promise<void>;
}

export interface Place<Connection = Record<string, unknown>> {
  readonly connection: Connection;
  /** Sends messages, in order within a partition. Resolves when the broker has received them. */
  send(messages: readonly SentMessage[]): Promise<void>;
  /**
   * Returns the number of undelivered or unacknowledged messages; in a topic, those after the
   * committed offset.
   */
  unacknowledged(): Promise<number>;
}

export interface SentMessage {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** The zero-based partition; always 0 in a queue. */
  readonly partition: number;
}

export interface BreakablePlace<Connection = Record<string, unknown>> extends Place<Connection> {
  /** Ends the connections to the broker, and makes it unresponsive. */
  cut(): Promise<void>;
  /** Makes the broker responsive again, with the same messages. */
  heal(): Promise<void>;
}
