import type { Config } from '@gateway/core/config';
import { sealer, type Open } from '@gateway/core/crypto';
import { explainDatabaseError, isGatewayError } from '@gateway/core/errors';
import { silentLog, type Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { repeat, type Lifecycle } from '@gateway/core/process';
import type { Kv } from '@gateway/store/kv';
import {
  hasTable,
  openDatabase,
  Replicas,
  requireReady,
  requireSessions,
  type Database,
} from '@gateway/store/postgres';
import { DEFAULT_SHARD, migratedAs, Shards, type Shard } from '@gateway/store/shards';
import { exportPoolSeries } from './telemetry/pool-series.js';
import { startSampler } from './telemetry/sampler.js';

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
    if (migrated) await useShard({ name: DEFAULT_SHARD, database, settings }, log);
    else await requireSessions(database, settings);
    if (migrated || (await hasTable(database.pool, 'shards'))) await shards.refresh();
    return { database, shards, close };
  } catch (error) {
    await close();
    throw explainDatabaseError(error, settings);
  }
}

/** Logs migrations of newer versions, and a change of the system's collations. */
export async function useShard(
  shard: Pick<Shard, 'name' | 'database' | 'settings'>,
  log: Pick<Log, 'warn'>,
): Promise<void> {
  const as = migratedAs(shard);
  const { newer, collation } = await requireReady(shard.database, shard.settings, as);
  if (newer.length > 0)
    log.warn(
      { migrations: newer },
      'The database is newer than this gateway. Its migrations only add, so this version works too.',
    );
  if (collation)
    log.warn(
      { ...(as !== undefined && { shard: as }), change: collation.sentence, fix: collation.fix },
      'Indexes on text may be corrupt: the collations of the system have changed.',
    );
}

/** The errors of a shard that no wait repairs. */
const UNUSABLE = ['migration_pending', 'database_newer', 'shard_schema'] as const;

/**
 * Checks the shards other than the control plane's. One that is away is only logged.
 *
 * @throws GatewayError if a shard lacks a migration, or is newer than this version
 */
export async function useOtherShards(shards: Shards, log: Pick<Log, 'warn'>): Promise<void> {
  const others = shards.all.filter(({ name }) => name !== DEFAULT_SHARD);
  const checks = others.map((shard) =>
    useShard(shard, log).catch((error: unknown) => {
      if (UNUSABLE.some((code) => isGatewayError(error, code))) throw error;
      log.warn(
        { shard: shard.name, error },
        'A shard is unavailable; requests for its projects fail until it recovers.',
      );
    }),
  );
  await Promise.all(checks);
}

/** The interval at which added, changed and removed shards are noticed. */
const FOLLOW_MS = 5_000;
const REPLICAS_MS = 1_000;

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
  const refresh = () => shards.refresh().then(() => FOLLOW_MS);
  const following = repeat(refresh, {
    afterMs: FOLLOW_MS,
    retryMs: FOLLOW_MS,
    failed(error, isFirst) {
      if (isFirst)
        log.warn({ error }, 'Could not read the shards; continuing with the known ones.');
    },
  });
  lifecycle.add('shards', following);
  const replicas = new Replicas(database, {
    settings: config.database,
    ...pools,
    onRead: (server) => meter.add('gateway_replica_reads_total', { server }),
    onChange(replica, reason) {
      if (reason === null) log.info({ replica }, 'A read replica is in use again.');
      else log.warn({ replica, reason }, 'A read replica is excluded; reads go elsewhere.');
    },
  });
  lifecycle.add('replicas', () => replicas.close());
  lifecycle.add(
    'pool series',
    exportPoolSeries(meter, () => [
      ...shards.all,
      ...replicas.databases.map((its) => ({ name: DEFAULT_SHARD, database: its })),
    ]),
  );
  if (replicas.databases.length > 0) await checkEachSecond(replicas, plugins, lifecycle);
  lifecycle.add('sampler', startSampler({ config, plugins, shards, replicas, kv, log }));
  return replicas;
}

async function checkEachSecond(
  replicas: Replicas,
  { meter }: Pick<ActivatedPlugins, 'meter'>,
  lifecycle: Pick<Lifecycle, 'add'>,
): Promise<void> {
  await replicas.check();
  const check = () => replicas.check().then(() => REPLICAS_MS);
  const options = { afterMs: REPLICAS_MS, retryMs: REPLICAS_MS, failed: () => undefined };
  lifecycle.add('replica checks', repeat(check, options));
  const setLags = () => {
    for (const { address: replica, lagSeconds } of replicas.states)
      if (lagSeconds !== undefined)
        meter.set('gateway_replica_lag_seconds', { replica }, lagSeconds);
  };
  lifecycle.add('replica series', meter.collect(setLags));
}
