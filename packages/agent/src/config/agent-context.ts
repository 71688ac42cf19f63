import type { Config } from '@gateway/core/config';
import type { Open } from '@gateway/core/crypto';
import type { Log } from '@gateway/core/logging';
import type { LoopShares, ProjectPace } from '@gateway/core/process';
import type { Sandbox } from '@gateway/sandbox';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import type { Shard } from '@gateway/store/shards';
import type { Clock } from '../model/clock.js';
import type { AgentLease } from '../model/lease.js';
import type { PlaneHealth } from '../model/plane-health.js';
import type { Measure } from '../telemetry/measure.js';
import type { Tracing } from '../telemetry/tracing.js';
import type { ConfigCache } from '@gateway/ingest/routing/config-cache';

/** Dependencies shared by the parts of a data plane. */
export interface AgentContext {
  readonly config: Config;
  readonly log: Log;
  readonly health: PlaneHealth;
  /** The control plane. */
  readonly database: Database;
  /** The data plane. The default shard has the same database as the control plane. */
  readonly shard: Shard;
  /** The number of shards that the agent works on. */
  readonly shardCount: number;
  readonly kv: Kv;
  readonly configCache: ConfigCache;
  readonly open: Open;
  readonly sandbox: Sandbox;
  readonly loopShares: LoopShares;
  /** Limits the events of each project. */
  readonly pace: ProjectPace;
  readonly lease: AgentLease;
  readonly clock: Clock;
  readonly measure?: Measure | undefined;
  readonly tracing?: Tracing | undefined;
}
