/** The queues between commit and deliveries, named in the spec: create-event queue, workflow queue. */
export type QueueName = 'create-event' | 'match-subscriptions';

/** Maps shared by all processes: the circuit breakers by endpoint id. */
export type MapName = 'breakers';

/** A short text that names work recorded in Postgres. */
export interface Signal {
  /** Identifies the signal in `done`. */
  readonly ticket: string;
  readonly text: string;
  /** Epoch milliseconds by the clock of KV. */
  readonly pushedAtMs: number;
}

/** A pulled signal that is not done after this is pulled again. */
export const TAKE_OVER_MS = 10_000;

/** Signals that wait, and signals that were pulled and are not done. */
export interface QueueLoad {
  readonly waiting: number;
  readonly pulled: number;
}

/**
 * A queue of signals shared by all agents. Each signal is pulled by one agent; one that is not done within `TAKE_OVER_MS` is pulled again.
 * A lost signal only costs time: reconciliation finds its event in Postgres.
 */
export interface SignalQueue {
  push(texts: readonly string[]): Promise<void>;
  /** Waits for signals and returns up to `limit`; an empty list when `signal` aborts. Rejects when KV is down. */
  pull(limit: number, signal: AbortSignal): Promise<Signal[]>;
  done(tickets: readonly string[]): Promise<void>;
  /** Signals that are not done. */
  depth(): Promise<number>;
  load(): Promise<QueueLoad>;
}

/** A compare-and-set: applied if the entry equals `from`. Undefined means no entry. */
export interface MapChange {
  readonly field: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** A map of texts shared by all processes, small enough to read whole. Entries do not expire. */
export interface SharedMap {
  /** All entries, and KV's time in epoch milliseconds, which times in entries refer to. */
  all(): Promise<{ readonly nowMs: number; readonly entries: ReadonlyMap<string, string> }>;
  /** Applies the changes atomically and returns which were applied. */
  change(changes: readonly MapChange[]): Promise<boolean[]>;
}

export interface Kv {
  queue(name: QueueName): SignalQueue;
  map(name: MapName): SharedMap;
  /**
   * Takes tokens of a bucket shared by all agents.
   *
   * @param capacity size of the bucket; default: one second's worth
   * @returns the granted tokens and, when none was granted, the milliseconds until there are more
   */
  takeTokens(bucket: string, ratePerSecond: number, wanted: number, capacity?: number): Promise<{ granted: number; waitMs: number }>;
  /** The text set under the name, unless it has expired. */
  get(name: string): Promise<string | undefined>;
  /** Sets a text for `ttlMs`; with `ifAbsent` only when there is none. */
  set(name: string, text: string, options: { readonly ttlMs: number; readonly ifAbsent?: boolean }): Promise<void>;
  /** Rejects when KV does not answer or accepts no writes. */
  ping(): Promise<void>;
  /** The text of Redis' INFO; null when there is no server. Rejects when KV does not answer. */
  info(): Promise<string | null>;
  close(): Promise<void>;
}

/** The `kv` settings. */
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
  /** With addresses, the master of that name replaces `host` and `port`. */
  sentinel?: {
    readonly master_name?: string | undefined;
    readonly addresses: readonly string[];
    readonly username?: string | undefined;
    readonly password?: string | undefined;
  };
  /** With addresses, this Cluster replaces `host` and `port`. */
  cluster?: { readonly addresses: readonly string[] };
}
