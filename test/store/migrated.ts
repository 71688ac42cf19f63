import { openDatabase, type Database } from '#store/postgres/database';
import { migrateUp } from '#store/postgres/migrate';
import { bothPlanes, type Planes } from '#store/postgres/planes';
import { connectionOf, database } from '../support/database.js';

export function openUrl(url: string, poolSize = 4): Database {
  return openDatabase({ scheme: 'postgres', ...connectionOf(url) }, { poolSize, name: 'test' });
}

export async function migrate(url: string): Promise<void> {
  const opened = openUrl(url);
  try {
    await migrateUp(opened);
  } finally {
    await opened.close();
  }
}

/** A private, migrated and opened database; `rows` bypasses the store. */
export async function migratedDatabase(): Promise<
  Database & { url: string; planes: Planes; rows: Awaited<ReturnType<typeof database>>['rows'] }
> {
  const own = await database({ migrate });
  const opened = openUrl(own.url);
  return {
    ...opened,
    url: own.url,
    planes: bothPlanes(opened),
    rows: own.rows,
    close: async () => {
      await opened.close();
      await own.close();
    },
  };
}
