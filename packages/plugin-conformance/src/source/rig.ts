import type { KillableReader, ReaderOptions } from './reader-process.js';

/**
 * The rig of a source: a broker, with the means to observe and disturb it. Without an optional
 * member, its rules are skipped and say so.
 */
export interface SourceRig<Connection = Record<string, unknown>> {
  /**
   * `topic`: messages are in ordered partitions, and the window applies per partition. `queue`:
   * readers share the messages, and the window applies per worker.
   */
  readonly shape: 'topic' | 'queue';
  /**
   * True if messages arrive in order (per partition). Default: true for a topic, false for a queue.
   */
  readonly ordered?: boolean;
  /** Bodies other than text; by default supported. */
  readonly bodies?: { readonly binary?: boolean; readonly empty?: boolean };
  /** False if the broker has none. */
  readonly headers?: boolean;
  /**
   * Milliseconds until an unacknowledged message is redelivered. Make it short in `open`; omit it
   * if the broker waits as long as the reader lives.
   */
  readonly leaseMs?: number;
  /** The plugin's settings, as built from its manifest. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Creates an empty queue or topic. Called many times, also while earlier ones are in use. */
  open(wanted: { readonly partitions: number }): Promise<Place<Connection>>;
  /** The suite may disconnect this broker. */
  openBreakable?(): Promise<BreakablePlace<Connection>>;
  /**
   * The plugin's module, `import.meta.resolve('./index.js')`, for a process that is killed while it
   * reads; or a function that starts a reader elsewhere.
   */
  readonly reader?: string | ((options: ReaderOptions) => KillableReader | Promise<KillableReader>);
  /** Credentials that the broker rejects, and the secrets in them. */
  readonly wrongCredentials?: {
    readonly connection: Connection;
    readonly secrets: readonly string[];
  };
  /** A missing queue or topic. */
  readonly missing?: { readonly connection: Connection };
  /** An address that accepts connections, or packets, and never answers. */
  readonly silent?: { readonly connection: Connection };
  close?(): Promise<void>;
}

export interface Place<Connection = Record<string, unknown>> {
  readonly connection: Connection;
  /** Sends messages, in order within a partition, and resolves when the broker has them. */
  send(messages: readonly SentMessage[]): Promise<void>;
  /**
   * Counts messages that are undelivered or unacknowledged; in a topic, after the committed offset.
   */
  unacknowledged(): Promise<number>;
}

export interface SentMessage {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** The partition, from 0; always 0 in a queue. */
  readonly partition: number;
}

export interface BreakablePlace<Connection = Record<string, unknown>> extends Place<Connection> {
  /** Ends connections; the broker stops answering. */
  cut(): Promise<void>;
  /** Restores the broker and its messages. */
  heal(): Promise<void>;
}
