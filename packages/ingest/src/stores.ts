import type { Config } from '@gateway/core/config';
import { sealer, type Open } from '@gateway/core/crypto';
import { explainDatabaseError } from '@gateway/core/errors';
import { silentLog, type Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Lifecycle } from '@gateway/core/process';
import { startSampler } from '@gateway/store/counts/sampler';
import type { Kv } from '@gateway/store/kv';
import {
  exportPoolMetrics,
  openDatabase,
  Replicas,
  requireReady,
  requireSessions,
  type Database,
} from '@gateway/store/postgres';
import { hasShards, Shards } from '@gateway/store/shards';

interface StoresOptions {
  /** The application name. */
  readonly name: string;
  /** Per pool. */
  readonly poolSize: number;
  readonly log?: Pick<Log, 'warn'>;
  /** Opens the passwords of shards. By default with the configured key, once a shard has one. */
  readonly open?: Open | undefined;
  /** By default, all migrations of the control plane must have been applied. */
  readonly migrated?: boolean;
}

/** The control plane, and the shards as they are stored now. */
export interface Stores {
  readonly database: Database;
  readonly shards: Shards;
  close(): Promise<void>;
}

/**
 * Reads the shards without connecting to them.
 *
 * @throws GatewayError if Postgres is unreachable, lacks a migration, or is newer than this version
 */
export async function openStores(
  { database: settings, encryption_key: key }: Pick<Config, 'database' | 'encryption_key'>,
  { name, poolSize, log = silentLog, open, migrated = true }: StoresOptions,
): Promise<Stores> {
  const database = openDatabase(settings, { poolSize, name });
  const shards = new Shards(database, {
    settings,
    open: open ?? ((...sealed) => sealer(key).open(...sealed)),
    poolSize,
    name,
  });
  const close = async () => {
    await shards.close();
    await database.close();
  };
  try {
    if (migrated) await requireReady(database, settings, log);
    else await requireSessions(database, settings);
    if (migrated || (await hasShards(database.pool))) await shards.refresh();
    return { database, shards, close };
  } catch (error) {
    await close();
    throw explainDatabaseError(error, settings);
  }
}

/**
 * Follows the shards and the replicas of a running process, samples the queues, and exports the
 * series of all. Ends with `lifecycle`.
 *
 * @param pools of the replicas
 */
export async function watchStores(
  { database, shards }: Pick<Stores, 'database' | 'shards'>,
  {
    config,
    plugins,
    log,
    kv,
    ...pools
  }: {
    readonly config: Config;
    readonly plugins: ActivatedPlugins;
    readonly log: Log;
    readonly kv: Kv;
    readonly name: string;
    readonly poolSize: number;
  },
  lifecycle: Pick<Lifecycle, 'add'>,
): Promise<Replicas> {
  const { meter } = plugins;
  shards.follow(log);
  lifecycle.add(
    'pool series',
    exportPoolMetrics(meter, () => shards.all),
  );
  const settings = config.database;
  const replicas = new Replicas(database, { settings, ...pools, log, meter });
  lifecycle.add('replicas', () => replicas.close());
  await replicas.start();
  lifecycle.add('sampler', startSampler({ config, plugins, database, shards, replicas, kv, log }));
  return replicas;
}
