import type { Config } from '@gateway/core/config';

/** The queues between commit and deliveries, named in the spec: create-event queue, workflow queue. */
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

/** A queue shared by all agents: a signal that is not done within `TAKE_OVER_MS` is pulled again. A lost one costs time: reconciliation finds its event. */
export interface SignalQueue {
  push(texts: readonly string[]): Promise<void>;
  /** Waits for signals and returns up to `limit`; an empty list when `signal` aborts. Rejects when KV is down. */
  pull(limit: number, signal: AbortSignal): Promise<Signal[]>;
  /** Resolves before they are acknowledged, which one command does for those of a moment. One that gets lost is pulled again. */
  done(tickets: readonly string[]): Promise<void>;
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
  change(changes: readonly MapChange[]): Promise<boolean[]>;
}

export interface TakenTokens {
  readonly granted: number;
  /** Whole tokens that are left. */
  readonly left: number;
  /** Until there are more, when none was granted. */
  readonly waitMs: number;
}

export interface Kv {
  queue(name: QueueName): SignalQueue;
  map(name: 'breakers'): SharedMap;
  /** Takes tokens of a bucket shared by all agents. */
  takeTokens(bucket: string, ratePerSecond: number, wanted: number, capacity?: number): Promise<TakenTokens>;
  get(name: string): Promise<string | undefined>;
  /** The texts of these names, in their order. The names must have one `{part}` in common, which keeps them on one node of a Cluster. */
  getAll(names: readonly string[]): Promise<(string | undefined)[]>;
  /** Sets a text for `ttlMs`; with `ifAbsent` only when there is none. */
  set(name: string, text: string, options: { readonly ttlMs: number; readonly ifAbsent?: boolean }): Promise<void>;
  /** Rejects when KV does not answer or accepts no writes. */
  ping(): Promise<void>;
  /** The text of Redis' INFO; null when there is no server. Rejects when KV does not answer. */
  info(): Promise<string | null>;
  close(): Promise<void>;
}

/** The `kv` settings. With addresses, a Cluster or the master named by Sentinels replaces `host` and `port`. */
export type KvSettings = Pick<Config['kv'], 'type' | 'host' | 'port'> &
  Partial<Omit<Config['kv'], 'scheme' | 'tls'>> & { readonly scheme: string; readonly tls?: Partial<Config['kv']['tls']> };
