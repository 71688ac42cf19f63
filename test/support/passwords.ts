import fs from 'node:fs';
import path from 'node:path';
import { database } from './database.js';
import type { PostgresServer } from './start/postgres.js';

/** Makes a private Postgres ask a role for its password. */
export async function requirePasswords(
  { folder, url }: Pick<PostgresServer, 'folder' | 'url'>,
  role: string,
): Promise<void> {
  const lines = [`host all ${role} 127.0.0.1/32 scram-sha-256`, 'host all all 127.0.0.1/32 trust'];
  fs.writeFileSync(path.join(folder, 'data', 'pg_hba.conf'), `${lines.join('\n')}\n`);
  const admin = await database({ postgres: { url } });
  await admin.rows('select pg_reload_conf()');
  await admin.close();
}
