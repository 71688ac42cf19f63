import type { ActivatedPlugins, Config, Log, Sealer } from '@gateway/core';
import type { Database, Kv, UsageCounter } from '@gateway/store';
import type { Billing } from './billing.js';
import type { Links } from './links.js';
import type { Lookups } from './lookups.js';
import type { ProcessCredentials } from './process-credentials.js';
import type { RequestLimit } from './request-limit.js';

/** What the routes use, made once by `startServer`. */
export interface Parts {
  readonly config: Config;
  readonly database: Database;
  readonly kv: Kv;
  readonly plugins: ActivatedPlugins;
  readonly sealer: Sealer;
  readonly log: Log;
  readonly links: Links;
  readonly credentials: ProcessCredentials;
  readonly lookups: Lookups;
  readonly limit: RequestLimit;
  readonly usage: UsageCounter;
  /** Undefined when it is not enabled. */
  readonly billing: Billing | undefined;
}
