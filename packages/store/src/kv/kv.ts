import type { Config } from '@gateway/core/config';

/** The create-event queue and the workflow queue of the spec, between commit and deliveries. */
export type QueueName = 'create-event' | 'match-subscriptions' | 'first-attempts';

/** A short text that names work recorded in Postgres. */
export interface Signal {
  readonly ticket: string;
  readonly text: string;
  readonly pushedAtMs: number;
}

export const TAKE_OVER_MS = 10_000;

export interface QueueLoad {
  readonly waiting: number;
  readonly pulled: number;
}

/**
 * Shared by all agents: a signal not done within `TAKE_OVER_MS` is pulled again. A lost signal
 * costs time: reconciliation finds its event.
 */
export interface SignalQueue {
  push(texts: readonly string[]): Promise<void>;
  /**
   * Waits for signals and returns up to `limit`; none when `signal` aborts. Rejects when KV is
   * down.
   */
  pull(limit: number, signal: AbortSignal): Promise<Signal[]>;
  /**
   * Resolves before the acknowledgement, which is batched. Signals with a lost acknowledgement are
   * pulled again.
   */
  done(tickets: readonly string[]): Promise<void>;
  depth(): Promise<number>;
  load(): Promise<QueueLoad>;
}

/** A compare-and-set: applied if the entry equals `from`. Undefined: no entry. */
export interface MapChange {
  readonly field: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** A map shared by all processes, small enough to read whole. Entries do not expire. */
export interface SharedMap {
  /**
   * Returns all entries, and KV's time in epoch milliseconds, the reference for times in entries.
   */
  all(): Promise<{ readonly nowMs: number; readonly entries: ReadonlyMap<string, string> }>;
  change(changes: readonly MapChange[]): Promise<boolean[]>;
}

export interface TakenTokens {
  readonly granted: number;
  readonly left: number;
  /** Milliseconds until the next token, if none was granted. */
  readonly waitMs: number;
}

export interface Kv {
  queue(name: QueueName): SignalQueue;
  map(name: 'breakers'): SharedMap;
  takeTokens(
    bucket: string,
    ratePerSecond: number,
    wanted: number,
    capacity?: number,
  ): Promise<TakenTokens>;
  get(name: string): Promise<string | undefined>;
  /**
   * Returns the texts in order. The names share one `{part}`, which keeps them on one node of a
   * Cluster.
   */
  getAll(names: readonly string[]): Promise<(string | undefined)[]>;
  /** With `ifAbsent`, sets the text only if there is none. */
  set(
    name: string,
    text: string,
    options: { readonly ttlMs: number; readonly ifAbsent?: boolean },
  ): Promise<void>;
  /** Rejects when KV does not answer or accepts no writes. */
  ping(): Promise<void>;
  /** Returns Redis' INFO; null without a server. Rejects when KV does not answer. */
  info(): Promise<string | null>;
  close(): Promise<void>;
}

/** Addresses of a Cluster or of Sentinels replace `host` and `port`. */
export type KvSettings = Pick<Config['kv'], 'type' | 'host' | 'port'> &
  Partial<Omit<Config['kv'], 'scheme' | 'tls'>> & {
    readonly scheme: string;
    readonly tls?: Partial<Config['kv']['tls']>;
  };
