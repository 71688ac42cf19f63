import type { Pool } from 'pg';

/**
 * Asks Postgres for a sign of life, with a connection of the pool. Changes nothing.
 *
 * @param withinMs how long the answer may take
 * @returns whether it takes writes: false for a replica, and where `default_transaction_read_only` is on
 * @throws what keeps it from answering
 */
export async function probeDatabase(pool: Pool, withinMs: number): Promise<{ isWritable: boolean }> {
  const { rows } = await pool.query<{ writable: boolean }>({
    text: `select current_setting('transaction_read_only') = 'off' as writable`,
    // Read by node-postgres of a query as well as of a connection, though its types do not say so.
    ...{ query_timeout: withinMs },
  });
  return { isWritable: rows[0]!.writable };
}
