import type { Config } from '@gateway/core/config';
import type { Open } from '@gateway/core/crypto';
import type { Log } from '@gateway/core/logging';
import type { Health, LoopShares } from '@gateway/core/process';
import type { Sandbox } from '@gateway/sandbox';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import type { Clock } from '../model/clock.js';
import type { AgentLease } from '../model/lease.js';
import type { Measure } from '../telemetry/measure.js';
import type { Tracing } from '../telemetry/tracing.js';
import type { ConfigCache } from '@gateway/ingest/routing/config-cache';

/** Dependencies shared by the parts of an agent. */
export interface AgentContext {
  readonly config: Config;
  readonly log: Log;
  readonly health: Health;
  readonly database: Database;
  readonly kv: Kv;
  readonly configCache: ConfigCache;
  readonly open: Open;
  readonly sandbox: Sandbox;
  readonly loopShares: LoopShares;
  readonly lease: AgentLease;
  readonly clock: Clock;
  readonly measure?: Measure | undefined;
  readonly tracing?: Tracing | undefined;
}
