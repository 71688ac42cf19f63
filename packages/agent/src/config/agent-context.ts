import type { Config } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import type { Health } from '@gateway/core/process';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import type { Clock } from '../model/clock.js';
import type { AgentLease } from '../model/lease.js';
import type { Measure } from '../telemetry/measure.js';
import type { Tracing } from '../telemetry/tracing.js';
import type { ConfigCache } from '@gateway/ingest/routing/config-cache';

export interface AgentContext {
  readonly config: Config;
  readonly log: Log;
  readonly health: Health;
  readonly database: Database;
  readonly kv: Kv;
  readonly configCache: ConfigCache;
  readonly lease: AgentLease;
  readonly clock: Clock;
  /** Undefined when metrics are off. */
  readonly measure?: Measure | undefined;
  /** Undefined without an active tracer. */
  readonly tracing?: Tracing | undefined;
}
