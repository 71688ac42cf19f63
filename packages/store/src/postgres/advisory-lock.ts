import type pg from 'pg';
import type { Querier } from './connection.js';
import { LOCK_NOT_AVAILABLE, sqlState } from './sqlstate.js';

/** Closes the connection on failure or abort, so that no lock, transaction or setting survives. */
export async function withConnection<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const client = await pool.connect();
  const end = () => void client.end().catch(() => undefined);
  signal?.addEventListener('abort', end);
  let failed = true;
  try {
    signal?.throwIfAborted();
    const result = await work(client);
    failed = false;
    return result;
  } finally {
    signal?.removeEventListener('abort', end);
    client.release(failed);
  }
}

/** Commits what `work` does, unless it fails. */
export function withTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
  { begin = 'begin', signal }: { begin?: string; signal?: AbortSignal | undefined } = {},
): Promise<T> {
  const committed = async (client: pg.PoolClient) => {
    await client.query(begin);
    const result = await work(client);
    await client.query('commit');
    return result;
  };
  return withConnection(pool, committed, signal);
}

/** Undefined if another process holds it. `signal` aborts as in `withConnection`. */
export function withAdvisoryLock<T>(
  pool: pg.Pool,
  name: string,
  work: (client: pg.PoolClient) => Promise<T>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  if (pool.options.isPooled) return withTransactionLock(pool, name, work, signal);
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
 * Behind a pooler, a session's lock would stay in a session that others use next. The pooler leaves
 * an open transaction its session, so that holds the lock, and `work` runs on another connection.
 * The idle transaction has no snapshot and holds back no vacuum.
 */
function withTransactionLock<T>(
  pool: pg.Pool,
  name: string,
  work: (client: pg.PoolClient) => Promise<T>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  const locked = async (holder: pg.PoolClient) => {
    const lost = new AbortController();
    holder.once('end', () => lost.abort());
    if (!(await tryTransactionLock(holder, name))) return undefined;
    return withConnection(pool, work, AbortSignal.any([lost.signal, ...(signal ? [signal] : [])]));
  };
  return withTransaction(pool, locked, { signal });
}

/** The open transaction holds it until it ends, and may be idle for as long as the work takes. */
export async function tryTransactionLock(client: Querier, name: string): Promise<boolean> {
  const { rows } = await client.query<{ mine: boolean }>(
    'select pg_try_advisory_xact_lock(hashtext($1)) as mine',
    [name],
  );
  // This also ends the portal of the statement above, whose snapshot would hold back vacuum and
  // `create index concurrently`.
  await liftTimeouts(client);
  return rows[0]!.mine;
}

/**
 * Behind a pooler, a session has time limits from its role or database. Servers before 17 have no
 * `transaction_timeout`.
 */
export async function liftTimeouts(client: Querier): Promise<void> {
  await client.query(
    `select set_config(name, '0', true) from pg_settings
     where name in ('idle_in_transaction_session_timeout', 'transaction_timeout', 'statement_timeout')`,
  );
}

const BATCH = 1_000;

/**
 * Repeats a deletion of at most $1 rows, which keeps locks short. Returns the number of deleted rows.
 */
export async function deleteInBatches(
  client: Querier,
  text: string,
  values: readonly unknown[] = [],
): Promise<number> {
  for (let total = 0; ;) {
    const { rowCount } = await client.query(text, [BATCH, ...values]);
    total += rowCount ?? 0;
    if (rowCount !== BATCH) return total;
  }
}

/**
 * Waits at most `lockMs` for each lock, because a queued lock request blocks other statements.
 * Undefined after a timeout.
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
