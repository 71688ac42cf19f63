import type pg from 'pg';
import { LOCK_NOT_AVAILABLE, sqlState } from './sqlstate.js';

/**
 * Runs `work` on a pooled connection. Closes the connection on failure or abort, so that no lock,
 * transaction or setting survives.
 */
export async function withConnection<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const client = await pool.connect();
  const end = () => void client.end().catch(() => undefined);
  signal?.addEventListener('abort', end);
  // Ignore error events, which would end the process without a listener. A broken connection fails
  // its query anyway.
  const ignore = () => undefined;
  client.on('error', ignore);
  let failed = true;
  try {
    signal?.throwIfAborted();
    const result = await work(client);
    failed = false;
    return result;
  } finally {
    signal?.removeEventListener('abort', end);
    client.off('error', ignore);
    client.release(failed);
  }
}

/**
 * Runs `work` under a session-level advisory lock. Returns undefined if another session holds it.
 * `signal` aborts as in `withConnection`.
 */
export function withAdvisoryLock<T>(
  pool: pg.Pool,
  name: string,
  work: (client: pg.PoolClient) => Promise<T>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  const locked = async (client: pg.PoolClient) => {
    const { rows } = await client.query<{ mine: boolean }>(
      'select pg_try_advisory_lock(hashtext($1)) as mine',
      [name],
    );
    if (!rows[0]?.mine) return undefined;
    const result = await work(client);
    await client.query('select pg_advisory_unlock(hashtext($1))', [name]);
    return result;
  };
  return withConnection(pool, locked, signal);
}

/**
 * Runs `work` in a transaction that waits at most `lockMs` for each lock, because a queued lock
 * request blocks other statements. Returns undefined after a timeout.
 */
export async function withLockTimeout<T>(
  client: pg.PoolClient,
  lockMs: number,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    await client.query('begin');
    await client.query(`set local lock_timeout = ${lockMs}`);
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
    await client.query('rollback');
    return undefined;
  }
}
