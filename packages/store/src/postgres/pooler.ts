import { explainDatabaseError, GatewayError } from '@gateway/core/errors';
import type pg from 'pg';
import { withConnection, withTransaction } from './advisory-lock.js';
import type { DatabaseSettings } from './connection.js';
import type { Database } from './database.js';
import { requireSettings } from './session-settings.js';

/**
 * Unless `database.pooled` is set, sessions must be persistent; both addresses must lead to the
 * same database, with the required settings.
 * @throws GatewayError `database_pooled` for a pooler in transaction mode; `invalid_settings` if
 *   `database.direct.host` leads to another Postgres; `database_setting` or `database_encoding`
 */
export async function requireSessions(
  { pool, sessions }: Pick<Database, 'pool' | 'sessions'>,
  settings: DatabaseSettings,
): Promise<void> {
  const { host = settings.host, port } =
    settings.direct?.host === undefined ? settings : settings.direct;
  const isShared = await sharesSessions(sessions).catch((error: unknown) => {
    throw explainDatabaseError(error, { ...settings, host, port });
  });
  if (isShared && !settings.pooled) {
    throw new GatewayError('database_pooled', {
      host,
      port,
      reason: 'several connections share one session, as in transaction mode',
    });
  }
  await requireSettings(pool, settings);
  if (pool === sessions || settings.pooled) return;
  await requireSettings(sessions, { ...settings, host, port });
  const [pooled, direct] = await Promise.all([pool, sessions].map(identityOf));
  if (pooled === direct) return;
  const sentence = `database.direct.host points to a different Postgres than database.host: ${host}:${port} is not behind ${settings.host}:${settings.port}`;
  throw new GatewayError('invalid_settings', {
    problems: [{ key: 'database.direct.host', origin: 'database.direct.host', sentence }],
  });
}

const PID = 'select pg_backend_pid() as pid';

/** Only a pooler announces a PID other than the backend's. */
function sharesSessions(pool: pg.Pool): Promise<boolean> {
  return withConnection(pool, async (one) => {
    const before = await pidOf(one);
    if (one.processID === before) return false;
    return withTransaction(
      pool,
      async (other) => (await pidOf(other)) === before || (await pidOf(one)) !== before,
    );
  });
}

async function pidOf(client: pg.PoolClient): Promise<number> {
  return (await client.query<{ pid: number }>(PID)).rows[0]!.pid;
}

/** In a transaction, which a pooler in statement mode refuses. */
function identityOf(pool: pg.Pool): Promise<string> {
  return withTransaction(pool, async (client) => {
    const { rows } = await client.query<{ identity: string }>(
      `select pg_postmaster_start_time() || ' ' || current_database() as identity`,
    );
    return rows[0]!.identity;
  });
}
