import type pg from 'pg';

/**
 * Does the work on one connection of the pool. The connection goes with a failure: nothing of a work that broke off stays, be it a lock, a transaction or a
 * setting.
 *
 * @param signal ends the connection, and so the work with the statement that is under way, which rejects then
 */
export async function withConnection<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>, signal?: AbortSignal): Promise<T> {
  const client = await pool.connect();
  const end = () => void (client as unknown as pg.Client).end().catch(() => undefined);
  signal?.addEventListener('abort', end);
  // A connection that breaks fails its query; without a listener it would end the process as well.
  const broken = () => undefined;
  client.on('error', broken);
  let failed = true;
  try {
    signal?.throwIfAborted();
    const result = await work(client);
    failed = false;
    return result;
  } finally {
    signal?.removeEventListener('abort', end);
    client.off('error', broken);
    client.release(failed);
  }
}

/**
 * Does the work on one connection of the pool, unless another process is at work under that name. The lock goes with the connection.
 *
 * @param signal breaks the work off, as `withConnection` does
 * @returns what the work returns; undefined when another process is at it
 */
export function withAdvisoryLock<T>(
  pool: pg.Pool,
  name: string,
  work: (client: pg.PoolClient) => Promise<T>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  const alone = async (client: pg.PoolClient) => {
    const { rows } = await client.query<{ mine: boolean }>('select pg_try_advisory_lock(hashtext($1)) as mine', [name]);
    if (!rows[0]?.mine) return undefined;
    const result = await work(client);
    await client.query('select pg_advisory_unlock(hashtext($1))', [name]);
    return result;
  };
  return withConnection(pool, alone, signal);
}

/** https://www.postgresql.org/docs/current/errcodes-appendix.html: lock_not_available. */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * A transaction that waits for no lock for longer than a while: whoever waits for a table keeps all who come later waiting, agents among them.
 *
 * @returns what the work returns; undefined when it was rolled back because somebody holds a lock
 */
export async function withLockTimeout<T>(client: pg.PoolClient, lockMs: number, work: () => Promise<T>): Promise<T | undefined> {
  try {
    await client.query('begin');
    await client.query(`set local lock_timeout = ${lockMs}`);
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
    await client.query('rollback');
    return undefined;
  }
}
