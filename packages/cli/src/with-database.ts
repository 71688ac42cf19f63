import type { Config } from '@gateway/core/config';
import type { Database } from '@gateway/store/postgres';

/**
 * Opens the database for one piece of work and closes it. An error that is about reaching Postgres comes out naming the place and the setting.
 *
 * @param options.poolSize connections for work that does several things at once
 */
export async function withDatabase<T>(
  { database: settings }: Config,
  work: (database: Database) => Promise<T>,
  { poolSize = 2 }: { poolSize?: number } = {},
): Promise<T> {
  const [{ openDatabase }, { explainDatabaseError }] = await Promise.all([
    import('@gateway/store/postgres'),
    import('@gateway/core/errors'),
  ]);
  const database = openDatabase(settings, { poolSize, name: 'gateway' });
  try {
    return await work(database);
  } catch (error) {
    throw explainDatabaseError(error, settings);
  } finally {
    await database.close();
  }
}
