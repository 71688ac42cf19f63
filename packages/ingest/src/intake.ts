import type { RequestListener, ServerOptions } from 'node:http';
import type { Config } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Lifecycle, TokenBuckets } from '@gateway/core/process';
import type { Sandbox } from '@gateway/sandbox';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import type { Shards } from '@gateway/store/shards';
import type { EventWriter } from './commit/event-writer.js';
import type { IntakeConfig } from './routing/config-cache.js';

export interface IntakeParts {
  readonly config: Config;
  readonly database: Database;
  readonly shards: Shards;
  readonly kv: Kv;
  readonly plugins: ActivatedPlugins;
  readonly log: Log;
  readonly configCache: IntakeConfig;
  readonly pace: TokenBuckets;
  readonly writer: Pick<EventWriter, 'push'>;
  /** Replaces the sandbox that would start with the first function. */
  readonly sandbox?: Pick<Sandbox, 'run' | 'close'>;
}

export interface Intake {
  readonly listenerOptions: ServerOptions;
  takes(path: string): boolean;
  readonly handle: RequestListener;
}

export type OpenIntake = (parts: IntakeParts, lifecycle: Pick<Lifecycle, 'add'>) => Intake;
