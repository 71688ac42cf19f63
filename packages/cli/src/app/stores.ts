import type { Config } from '@gateway/core/config';
import {
  explainDatabaseError,
  explainKvError,
  GatewayError,
  kvAddress,
} from '@gateway/core/errors';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';

// The database and KV drivers are imported on demand: loading one takes longer than running a
// command that only prints help.

const KV_PATIENCE_MS = 2_000;

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
