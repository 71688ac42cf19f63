/**
 * What the author of a source gives to the conformance suite: a broker, and what the suite has to see of it and do to it that a plugin cannot.
 * What is optional is an ability: without it, its rules are skipped and say so.
 */
export interface SourceRig<Connection = Record<string, unknown>> {
  /**
   * `topic`: messages lie in partitions, a partition keeps its order, and the window counts per partition.
   * `queue`: the readers of a queue share its messages out, and the window counts per worker.
   */
  readonly shape: 'topic' | 'queue';
  /** Whether messages come in the order in which they were sent; of a topic those of one partition. Without it: `topic` yes, `queue` no. */
  readonly ordered?: boolean;
  /** What a body may be beside text; false where the broker cannot carry it. Without it both are true. */
  readonly bodies?: { readonly binary?: boolean; readonly empty?: boolean };
  /** False when the broker has no headers. */
  readonly headers?: boolean;
  /**
   * How long the broker, or another reader, waits for an acknowledgement before a message is handed out a second time, in milliseconds. Make it
   * short in the places that `open` makes; leave it out when it waits for as long as the reader lives.
   */
  readonly leaseMs?: number;
  /** The plugin's own settings, as the rows of its manifest make them. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Makes an empty queue or topic. Called many times, and again before the last one is done with. */
  open(wanted: { readonly partitions: number }): Promise<Place<Connection>>;
  /** Makes one whose broker the suite may take away. */
  openBreakable?(): Promise<BreakablePlace<Connection>>;
  /** A connection that the broker refuses for its credentials, and the secrets in it. */
  readonly wrongCredentials?: { readonly connection: Connection; readonly secrets: readonly string[] };
  /** A connection to a queue or topic that does not exist. */
  readonly missing?: { readonly connection: Connection };
  /** A connection to an address that takes connections, or packets, and never answers. */
  readonly silent?: { readonly connection: Connection };
  /** Ends everything that the rig has opened. */
  close?(): Promise<void>;
}

/** A queue or topic of its own for one rule. */
export interface Place<Connection = Record<string, unknown>> {
  readonly connection: Connection;
  /** Sends messages, one partition's in this order, and resolves when the broker has them. */
  send(messages: readonly SentMessage[]): Promise<void>;
  /** Messages that the broker would hand out again, now or later: never handed out, or not acknowledged. Of a topic: behind the acknowledged position. */
  unacknowledged(): Promise<number>;
}

export interface SentMessage {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** From 0; always 0 in a queue. */
  readonly partition: number;
}

export interface BreakablePlace<Connection = Record<string, unknown>> extends Place<Connection> {
  /** Takes the broker away: what is open ends, and nothing answers. */
  cut(): Promise<void>;
  /** Brings it back, with its messages. */
  heal(): Promise<void>;
}
