import type { Config } from '@gateway/core/config';
import type { Sealer } from '@gateway/core/crypto';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Kv } from '@gateway/store/kv';
import type { UsageCounter } from '@gateway/store/usage';
import type { Database } from '@gateway/store/postgres';
import type { Billing } from '../billing.js';
import type { Links } from './links.js';
import type { Lookups } from '../auth/lookups.js';
import type { ProcessCredentials } from '../auth/process-credentials.js';
import type { RequestLimit } from './rate-limit.js';

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
