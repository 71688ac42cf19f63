import { randomBytes } from 'node:crypto';
import type { Config } from '@gateway/core/config';
import { bootstrapUser } from '@gateway/store/config';
import { migrateUp, type Database } from '@gateway/store/postgres';
import { withDatabase } from '../app/database.js';
import { remember, type Memory } from './memory.js';

/**
 * Migrates the database and makes the user whose key everything else is made with, as `gateway migrate up` and `gateway bootstrap` do.
 *
 * @returns the names of the migrations that were applied
 */
export function prepareDatabase(config: Config, file: string, memory: Memory): Promise<{ applied: readonly string[]; memory: Memory }> {
  return withDatabase(
    config,
    async (database) => {
      const applied = await migrateUp(database);
      return { applied, memory: memory.api_key === undefined ? await makeUser(database, file) : memory };
    },
    { migrated: false },
  );
}

async function makeUser({ knex }: Database, file: string): Promise<Memory> {
  const email = `developer-${randomBytes(3).toString('hex')}@example.com`;
  const { user, password, api_key: apiKey } = await bootstrapUser(knex, { email, firstName: 'Local', lastName: 'Developer' });
  return remember(file, { api_key: apiKey.key, user: { email: user.email, password } });
}
