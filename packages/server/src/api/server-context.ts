import type { Config } from '@gateway/core/config';
import type { Sealer } from '@gateway/core/crypto';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Kv } from '@gateway/store/kv';
import type { UsageCounter } from '@gateway/store/usage';
import type { Database } from '@gateway/store/postgres';
import type { ProcessCredentials } from '../auth/process-credentials.js';
import type { RecordCache } from '../auth/record-cache.js';
import type { RequestLimit } from '../auth/request-limit.js';
import type { Links } from '../http/links.js';

/** What routes use, made once by `startServer`. */
export interface ServerContext {
  readonly config: Config;
  readonly database: Database;
  readonly kv: Kv;
  readonly plugins: ActivatedPlugins;
  readonly sealer: Sealer;
  readonly log: Log;
  readonly links: Links;
  readonly credentials: ProcessCredentials;
  readonly records: RecordCache;
  readonly limit: RequestLimit;
  readonly usage: UsageCounter;
  /** Undefined when billing is not enabled. */
  readonly billing: { readonly problem: string | null } | undefined;
}
