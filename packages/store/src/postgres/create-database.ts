import { explainDatabaseError } from '@gateway/core/errors';
import pg from 'pg';
import type { DatabaseSettings } from './connection.js';
import { openDatabase } from './database.js';
import { DUPLICATE_DATABASE, sqlState } from './sqlstate.js';

/** Exists on every server, for such connections. */
const MAINTENANCE = 'postgres';

/**
 * Creates the database of the settings, in UTF8, unless it exists. Throws `database_forbidden` if the
 * user may not, and connection errors.
 */
export async function createDatabase(settings: DatabaseSettings): Promise<void> {
  const options = { poolSize: 1, name: 'gateway' };
  const server = openDatabase({ ...settings, database: MAINTENANCE }, options);
  try {
    const client = await server.connect();
    try {
      const name = pg.escapeIdentifier(settings.database);
      await client.query(`create database ${name} encoding 'UTF8' template template0`);
    } finally {
      await client.end();
    }
  } catch (error) {
    if (sqlState(error) !== DUPLICATE_DATABASE) throw explainDatabaseError(error, settings);
  } finally {
    await server.close();
  }
}
