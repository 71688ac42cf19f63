import type { Config } from '@gateway/core/config';
import type { Open } from '@gateway/core/crypto';
import type { Log } from '@gateway/core/logging';
import type { LoopShares, TokenBuckets } from '@gateway/core/process';
import type { ConfigCache } from '@gateway/ingest/routing/config-cache';
import type { Sandbox } from '@gateway/sandbox';
import type { Kv, SharedBuckets } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import type { Shard } from '@gateway/store/shards';
import type { Clock } from '../model/clock.js';
import type { AgentLease } from '../model/lease.js';
import type { ShardHealth } from '../model/shard-health.js';
import type { Measure } from '../telemetry/measure.js';
import type { Tracing } from '../telemetry/tracing.js';

/** The parts that an agent has once, for all its shards. */
export interface ProcessContext {
  readonly config: Config;
  readonly log: Log;
  /** The control plane. */
  readonly database: Database;
  readonly kv: Kv;
  readonly configCache: ConfigCache;
  readonly open: Open;
  readonly sandbox: Sandbox;
  readonly loopShares: LoopShares;
  /** Limits the events of each project. */
  readonly pace: TokenBuckets;
  readonly measure?: Measure | undefined;
  readonly tracing?: Tracing | undefined;
}

export interface AgentContext extends ProcessContext {
  readonly shard: Shard;
  readonly health: ShardHealth;
  readonly lease: AgentLease;
  readonly clock: Clock;
  /** Limits shared by all agents. */
  readonly buckets: SharedBuckets;
}
