import type { Config } from '@gateway/core/config';
import {
  explainDatabaseError,
  explainKvError,
  GatewayError,
  kvAddress,
} from '@gateway/core/errors';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';

// Commands load drivers on demand: each takes longer to load than a command that prints help.

const KV_PATIENCE_MS = 2_000;

export interface DatabaseWork {
  /** Connections for concurrent work. */
  readonly poolSize?: number;
  /** Requires all migrations. */
  readonly migrated?: boolean;
}

/**
 * Opens the database for one piece of work and closes it. Connection errors name the address and
 * the setting.
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
 * Opens KV for one piece of work, retried for up to two seconds, and closes it. Throws
 * `kv_unreachable` or a similar error.
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
