import type { Config } from '@gateway/core/config';
import { DEFAULT_SHARD } from '../shards/shards.js';

/**
 * The queues between commit and delivery: `create-event` and `match-subscriptions` (the workflow
 * queue of the spec) for pending events, `first-attempts` for routed ones.
 */
export type QueueKind = 'create-event' | 'match-subscriptions' | 'first-attempts';

/** For the default shard or, with its name, of another one. */
export type QueueName = QueueKind | `${QueueKind}:${string}`;

/** An agent pulls only the signals of its shards. */
export function queueOf(queue: QueueKind, shard: string): QueueName {
  return shard === DEFAULT_SHARD ? queue : `${queue}:${shard}`;
}

/** A short string that refers to work recorded in Postgres. */
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
 * Shared by all agents. A signal not done within `TAKE_OVER_MS` is pulled again. A lost signal only
 * delays its event until reconciliation.
 */
export interface SignalQueue {
  push(texts: readonly string[]): Promise<void>;
  /** Waits for up to `limit` signals; none if `signal` aborts. Rejects if KV is down. */
  pull(limit: number, signal: AbortSignal): Promise<Signal[]>;
  /**
   * Resolves before the signals are acknowledged, in batches. If the acknowledgement is lost, they
   * are pulled again.
   */
  done(tickets: readonly string[]): Promise<void>;
  depth(): Promise<number>;
  load(): Promise<QueueLoad>;
}

/** A compare-and-set: applied only if the entry equals `from`. Undefined means no entry. */
export interface MapChange {
  readonly field: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** Shared by all processes, small enough to be read as a whole. Entries do not expire. */
export interface SharedMap {
  /** Also KV's time in epoch milliseconds, for comparison with times in entries. */
  all(): Promise<{ readonly nowMs: number; readonly entries: ReadonlyMap<string, string> }>;
  /** Like `all`, but only the entries of some fields, and how many there are in all. */
  some(fields: readonly string[]): Promise<{
    readonly nowMs: number;
    readonly entries: ReadonlyMap<string, string>;
    readonly size: number;
  }>;
  change(changes: readonly MapChange[]): Promise<boolean[]>;
}

export interface TakenTokens {
  readonly granted: number;
  readonly left: number;
  /** Until the next token; 0 if any was granted. */
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
   * In the order of `names`, which must share one `{part}`, so that they are on one Cluster node.
   */
  getAll(names: readonly string[]): Promise<(string | undefined)[]>;
  /** The value expires after `ttlMs`. With `ifAbsent`, an existing value remains. */
  set(
    name: string,
    text: string,
    options: { readonly ttlMs: number; readonly ifAbsent?: boolean },
  ): Promise<void>;
  /** Rejects if KV does not respond or accepts no writes. */
  ping(): Promise<void>;
  /**
   * The response to the Redis command INFO, or null if there is no server. Rejects if KV does not
   * respond.
   */
  info(): Promise<string | null>;
  close(): Promise<void>;
}

/** Cluster or Sentinel addresses replace `host` and `port`. */
export type KvSettings = Pick<Config['kv'], 'type' | 'host' | 'port'> &
  Partial<Omit<Config['kv'], 'scheme' | 'tls'>> & {
    readonly scheme: string;
    readonly tls?: Partial<Config['kv']['tls']>;
  };
