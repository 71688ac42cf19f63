import type { Pool } from 'pg';

/** What is worth knowing of a Postgres before a gateway relies on it. */
export interface DatabaseFacts {
  /** `17.2` */
  readonly version: string;
  readonly majorVersion: number;
  /** Version of the protocol, null without TLS. */
  readonly tls: string | null;
  /** Milliseconds of a statement that does nothing, there and back. */
  readonly latencyMs: number;
  /** Milliseconds that its clock is ahead of ours; negative when it is behind. */
  readonly clockAheadMs: number;
}

/** Looks at Postgres; changes nothing. Throws what keeps it from being reached. */
export async function readDatabaseFacts(pool: Pool): Promise<DatabaseFacts> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ version: string; number: number; tls: string | null }>(
      `select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
              (select version from pg_stat_ssl where pid = pg_backend_pid() and ssl) as tls`,
    );
    const startedAtMs = performance.now();
    const { rows: clock } = await client.query<{ ms: number }>(`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`);
    const latencyMs = performance.now() - startedAtMs;
    const { version, number, tls } = rows[0]!;
    const clockAheadMs = clock[0]!.ms - (Date.now() - latencyMs / 2);
    return { version: version.split(' ')[0]!, majorVersion: Math.floor(number / 10_000), tls, latencyMs, clockAheadMs };
  } finally {
    client.release();
  }
}

/** The time of the database, as text with all its digits: what is compared with times that it wrote must not be by our own clock. */
export async function databaseTime(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ now: string }>('select now()::text as now');
  return rows[0]!.now;
}

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
