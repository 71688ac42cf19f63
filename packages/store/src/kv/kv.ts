import type { Config } from '@gateway/core/config';
import type { TakenTokens } from '@gateway/core/process';
import { DEFAULT_SHARD } from '../shards/shards.js';

/**
 * Between commit and delivery: `create-event` and `match-subscriptions` (the workflow queue of the
 * spec) for pending events, `first-attempts` for routed ones.
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
 * A signal not done within `TAKE_OVER_MS` is pulled again. A lost signal only delays its event
 * until reconciliation.
 */
export interface SignalQueue {
  push(texts: readonly string[]): Promise<void>;
  /** Waits for up to `limit` signals; none if `signal` aborts. */
  pull(limit: number, signal: AbortSignal): Promise<Signal[]>;
  /** Acknowledges later, in batches. If that is lost, they are pulled again. */
  done(tickets: readonly string[]): Promise<void>;
  depth(): Promise<number>;
  load(): Promise<QueueLoad>;
}

/** Applied only if the entry equals `from`. Undefined means no entry. */
export interface MapChange {
  readonly field: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** Shared by all processes, small enough to be read as a whole. Entries do not expire. */
export interface SharedMap {
  /** With KV's time in epoch milliseconds, to compare with times in entries. */
  all(): Promise<{ readonly nowMs: number; readonly entries: ReadonlyMap<string, string> }>;
  /** Only these entries, and how many there are in all. */
  some(fields: readonly string[]): Promise<{
    readonly nowMs: number;
    readonly entries: ReadonlyMap<string, string>;
    readonly size: number;
  }>;
  change(changes: readonly MapChange[]): Promise<boolean[]>;
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
  /** `names` must share one `{part}`, so that they are on one Cluster node. */
  getAll(names: readonly string[]): Promise<(string | undefined)[]>;
  /** With `ifAbsent`, an existing value remains. */
  set(
    name: string,
    text: string,
    options: { readonly ttlMs: number; readonly ifAbsent?: boolean },
  ): Promise<void>;
  /** Also rejects if KV accepts no writes. */
  ping(): Promise<void>;
  /** The answer to INFO; null without a server. */
  info(): Promise<string | null>;
  close(): Promise<void>;
}

/** Cluster or Sentinel addresses replace `host` and `port`. */
export type KvSettings = Pick<Config['kv'], 'type' | 'host' | 'port'> &
  Partial<Omit<Config['kv'], 'scheme' | 'tls'>> & {
    readonly scheme: string;
    readonly tls?: Partial<Config['kv']['tls']>;
  };
