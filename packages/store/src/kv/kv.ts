/** The two queues between acceptance and deliveries; spec: create-event queue, workflow queue. */
export type QueueName = 'create-event' | 'match-subscriptions';

/** Maps that processes share: the circuit breakers of endpoints, by endpoint id. */
export type MapName = 'breakers';

/** One signal: a few words that name work whose truth is in Postgres. */
export interface Signal {
  /** Names this signal towards `done`. */
  readonly ticket: string;
  readonly text: string;
  /** When it was pushed, in epoch milliseconds by the clock of KV. */
  readonly pushedAtMs: number;
}

/** A signal that is held this long without being done is pulled again. */
export const TAKE_OVER_MS = 10_000;

/** How much there is to do of a queue. */
export interface QueueLoad {
  readonly waiting: number;
  readonly pulled: number;
}

/**
 * A queue of signals, shared by all agents. Each signal is pulled by one agent; one that is not done within `TAKE_OVER_MS` is pulled again.
 * A signal that is lost costs nothing but time: the reconciler finds its event in Postgres.
 */
export interface SignalQueue {
  push(texts: readonly string[]): Promise<void>;
  /** Waits until there are signals and returns up to `limit`; an empty list when `signal` aborts. Rejects when KV is away. */
  pull(limit: number, signal: AbortSignal): Promise<Signal[]>;
  done(tickets: readonly string[]): Promise<void>;
  /** Signals that are not done. */
  depth(): Promise<number>;
  /** The same, apart: those that wait, and those that were pulled and are not done. */
  load(): Promise<QueueLoad>;
}

/** One change of a shared map: it is made when what stands there is what the changer thinks; undefined stands for nothing. */
export interface MapChange {
  readonly field: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** A map of texts that all processes share, small enough to be read whole. Its entries stay until somebody takes them out. */
export interface SharedMap {
  /** All entries, and what the clock of KV shows, in epoch milliseconds: times that entries carry are by that clock. */
  all(): Promise<{ readonly nowMs: number; readonly entries: ReadonlyMap<string, string> }>;
  /** Makes each change whose `from` is what stands there now, all at one moment; tells which were made. */
  change(changes: readonly MapChange[]): Promise<boolean[]>;
}

export interface Kv {
  queue(name: QueueName): SignalQueue;
  map(name: MapName): SharedMap;
  /**
   * Takes tokens of a bucket that all agents share.
   *
   * @param capacity tokens that the bucket holds; one second's worth when it is left out
   * @returns how many of the wanted tokens were granted, and milliseconds until there are more when none was
   */
  takeTokens(bucket: string, ratePerSecond: number, wanted: number, capacity?: number): Promise<{ granted: number; waitMs: number }>;
  /** The text that was set under this name, until its time is over. */
  get(name: string): Promise<string | undefined>;
  /** Sets a text for so many milliseconds; with `ifAbsent` only when there is none. */
  set(name: string, text: string, options: { readonly ttlMs: number; readonly ifAbsent?: boolean }): Promise<void>;
  /** Rejects when KV does not answer, or accepts no writes. */
  ping(): Promise<void>;
  /** What the server tells of itself, in the form of Redis' INFO; null when there is no server. Rejects when KV does not answer. */
  info(): Promise<string | null>;
  close(): Promise<void>;
}

/** How to reach KV: the `kv` settings. */
export interface KvSettings {
  type: 'redis' | 'in-memory';
  scheme: string;
  host: string;
  port: number;
  username?: string | undefined;
  password?: string | undefined;
  database?: string | undefined;
  /** Used with the scheme `rediss`; paths of PEM files. */
  tls?: {
    readonly ca_file?: string | undefined;
    readonly cert_file?: string | undefined;
    readonly key_file?: string | undefined;
    readonly insecure_skip_verify?: boolean | undefined;
  };
  /** With addresses, the master of that name is used in place of `host` and `port`. */
  sentinel?: {
    readonly master_name?: string | undefined;
    readonly addresses: readonly string[];
    readonly username?: string | undefined;
    readonly password?: string | undefined;
  };
  /** With addresses, this Cluster is used in place of `host` and `port`. */
  cluster?: { readonly addresses: readonly string[] };
}
