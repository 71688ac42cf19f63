import type { Config } from '@gateway/core/config';
import type { Open } from '@gateway/core/crypto';
import {
  explainDatabaseError,
  explainKvError,
  GatewayError,
  kvAddress,
} from '@gateway/core/errors';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import type { OpenArchive } from '@gateway/store/retention/archive';
import type { Shard, Shards as OpenShards } from '@gateway/store/shards';

// The database and KV drivers are imported on demand: loading one takes longer than running a
// command that only prints help.

const KV_PATIENCE_MS = 2_000;
/** Agents find events without a signal a few seconds later. */
const SIGNAL_PATIENCE_MS = 1_000;

export interface DatabaseWork {
  /** Connections for concurrent work; 2 by default. */
  readonly poolSize?: number;
  /** Whether all migrations must have been applied; true by default. */
  readonly migrated?: boolean;
}

/**
 * Opens the database for one task and closes it afterwards. Connection errors include the address
 * and the setting.
 */
export async function withDatabase<T>(
  { database: settings }: Config,
  work: (database: Database) => Promise<T>,
  { poolSize = 2, migrated = true }: DatabaseWork = {},
): Promise<T> {
  const { openDatabase, requireMigrated, requireSessions } =
    await import('@gateway/store/postgres');
  const database = openDatabase(settings, { poolSize, name: 'gateway' });
  try {
    await requireSessions(database, settings);
    if (migrated) await requireMigrated(database);
    return await work(database);
  } catch (error) {
    throw explainDatabaseError(error, settings);
  } finally {
    await database.close();
  }
}

/**
 * Opens all shards for one task and closes them afterwards. The first is the default one, the
 * database of the settings, and the only one before a migration has created the others' table.
 * After a failure, names the shard that cannot be used, if there is one.
 */
export async function withShards<T>(
  config: Config,
  work: (shards: OpenShards) => Promise<T>,
  { poolSize = 2, migrated = true, open }: DatabaseWork & { readonly open?: Open } = {},
): Promise<T> {
  const [{ openStores }, { explainShards }] = await Promise.all([
    import('@gateway/ingest/stores'),
    import('@gateway/store/shards'),
  ]);
  const { shards, close } = await openStores(config, {
    name: 'gateway',
    poolSize,
    open,
    migrated,
  });
  try {
    return await work(shards);
  } catch (error) {
    throw explainDatabaseError(await explainShards(error, shards.all, migrated), config.database);
  } finally {
    await close();
  }
}

/**
 * Runs `work` on one shard after another. A failure on a shard other than the default one does not
 * stop the rest.
 *
 * @param work gets the shard, the name that migrations use for it, and the start of its lines of
 *   output, empty for an only shard
 * @throws GatewayError `shards_failed`
 */
export async function onEachShard(
  all: readonly Shard[],
  work: (shard: Shard, name: string | undefined, prefix: string) => Promise<void>,
): Promise<void> {
  const [{ requireSessions }, { migratedAs }] = await Promise.all([
    import('@gateway/store/postgres'),
    import('@gateway/store/shards'),
  ]);
  const problems: { readonly sentence: string }[] = [];
  for (const shard of all) {
    const { name, database, settings } = shard;
    const as = migratedAs(shard);
    try {
      await requireSessions(database, settings);
      await work(shard, as, all.length > 1 ? `${name}: ` : '');
    } catch (error) {
      if (as === undefined) throw error;
      problems.push({ sentence: `${name}: ${explainDatabaseError(error, settings).message}` });
    }
  }
  if (problems.length > 0) throw new GatewayError('shards_failed', { problems });
}

/**
 * Opens KV for one task, retried for up to two seconds, and closes it afterwards. Throws
 * `kv_unreachable`, or another error that includes KV's address.
 */
export async function withKv<T>(
  { kv: settings }: Config,
  work: (kv: Kv) => Promise<T>,
): Promise<T> {
  const { openKv, retryKv } = await import('@gateway/store/kv');
  let last: unknown;
  const kv = openKv(settings, (error) => (last = error));
  try {
    return await retryKv(() => work(kv), KV_PATIENCE_MS);
  } catch (error) {
    const explained = explainKvError(last ?? error, settings);
    if (explained instanceof GatewayError) throw explained;
    throw new GatewayError(
      'kv_unreachable',
      { ...kvAddress(settings), reason: explained.message },
      { cause: error },
    );
  } finally {
    await kv.close();
  }
}

/**
 * Opens KV to signal pending events. Returns undefined if KV is in memory. Throws `tls_file` if a
 * TLS file cannot be read.
 */
export async function openSignals({ kv: settings }: Config, onKvAway: () => void) {
  // Agents do not share this process's memory, so none would receive the signals.
  if (settings.type === 'in-memory') return undefined;
  const [{ openKv, retryKv }, { signalPending }] = await Promise.all([
    import('@gateway/store/kv'),
    import('@gateway/ingest/commit/signal-pending'),
  ]);
  const kv = openKv(settings, () => undefined);
  let isAway = false;
  const warn = () => {
    if (!isAway) onKvAway();
    isAway = true;
  };
  await retryKv(() => kv.ping(), SIGNAL_PATIENCE_MS).catch(warn);
  return {
    push: (
      events: readonly { readonly projectId: string; readonly id: string }[],
      shard: string,
    ) => (isAway ? undefined : signalPending({ kv, log: { warn }, shard }, events)),
    close: () => kv.close(),
  };
}

/** Opens the archive for one task. Throws `archive_off` if none is set. */
export async function withArchive<T>(
  { archive: { url, ...place } }: Config,
  work: (archive: OpenArchive) => Promise<T>,
): Promise<T> {
  if (url === undefined) throw new GatewayError('archive_off', {});
  const { openArchive } = await import('@gateway/store/retention/archive');
  const archive = await openArchive({ url, ...place });
  try {
    return await work(archive);
  } finally {
    archive.close();
  }
}
