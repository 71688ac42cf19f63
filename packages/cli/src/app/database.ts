import type { Config } from '@gateway/core/config';
import type { Database } from '@gateway/store/postgres';

export interface DatabaseOptions {
  /** Connections for work that does several things at once. */
  readonly poolSize?: number;
  /** Whether the database must have all migrations; the error otherwise says to run them. */
  readonly migrated?: boolean;
}

/**
 * Opens the database for one piece of work and closes it. An error that is about reaching Postgres comes out naming the place and the setting.
 */
export async function withDatabase<T>(
  { database: settings }: Config,
  work: (database: Database) => Promise<T>,
  { poolSize = 2, migrated = true }: DatabaseOptions = {},
): Promise<T> {
  const [{ openDatabase, requireMigrated, requireSessions }, { explainDatabaseError }] = await Promise.all([
    import('@gateway/store/postgres'),
    import('@gateway/core/errors'),
  ]);
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
