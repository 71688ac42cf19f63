import type { ActivatedPlugins, Config, Log, Sealer } from '@gateway/core';
import type { Database, Kv } from '@gateway/store';

/** What the routes use, made once by `startServer`. */
export interface Parts {
  readonly config: Config;
  readonly database: Database;
  readonly kv: Kv;
  readonly plugins: ActivatedPlugins;
  readonly sealer: Sealer;
  readonly log: Log;
}
