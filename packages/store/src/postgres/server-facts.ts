import { withTimeout } from '@gateway/core/process';
import { escapeIdentifier, type Pool } from 'pg';
import type { Database } from './database.js';

export interface DatabaseFacts {
  readonly version: string;
  readonly majorVersion: number;
  readonly tls: string | null;
  readonly isWritable: boolean;
  readonly latencyMs: number;
  /** Relative to this process. Negative if it is behind. */
  readonly clockAheadMs: number;
  readonly collation: CollationChange | undefined;
}

export interface CollationChange {
  readonly sentence: string;
  readonly fix: string;
}

/**
 * The collations of the system may have changed since the database was created, as after an
 * upgrade. Indexes on text may then miss rows or hold duplicates:
 * https://www.postgresql.org/docs/current/sql-alterdatabase.html
 */
export async function readCollationChange(pool: Pool): Promise<CollationChange | undefined> {
  const { rows } = await pool.query<{ name: string; recorded: string; actual: string | null }>(
    `select datname as name, datcollversion as recorded, pg_database_collation_actual_version(oid) as actual
     from pg_database where datname = current_database() and datcollversion is not null`,
  );
  const [row] = rows;
  if (!row || row.recorded === row.actual) return undefined;
  const name = escapeIdentifier(row.name);
  return {
    sentence: `the collations of the system have changed since the database ${row.name} was created (version ${row.recorded}, now ${row.actual ?? 'unknown'}), so indexes on text may miss rows or hold duplicates`,
    fix: `as the owner of the database, run \`reindex database concurrently ${name}; alter database ${name} refresh collation version\`, one statement after the other`,
  };
}

const WRITABLE = `current_setting('transaction_read_only') = 'off' as writable`;

/** `latencyMs` is the round trip of one query; `tls` is null without TLS. */
export async function readDatabaseFacts(pool: Pool): Promise<DatabaseFacts> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{
      version: string;
      number: number;
      writable: boolean;
      tls: string | null;
    }>(
      `select current_setting('server_version') as version, current_setting('server_version_num')::int as number, ${WRITABLE},
              (select version from pg_stat_ssl where pid = pg_backend_pid() and ssl) as tls`,
    );
    const startedAtMs = performance.now();
    const { rows: clock } = await client.query<{ ms: number }>(
      `select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`,
    );
    const latencyMs = performance.now() - startedAtMs;
    const { version, number, writable, tls } = rows[0]!;
    const clockAheadMs = clock[0]!.ms - (Date.now() - latencyMs / 2);
    return {
      version: version.split(' ')[0]!,
      majorVersion: Math.floor(number / 10_000),
      tls,
      isWritable: writable,
      latencyMs,
      clockAheadMs,
      collation: await readCollationChange(pool),
    };
  } finally {
    client.release();
  }
}

/** In full precision, to compare with times that the database has written. */
export async function databaseTime(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ now: string }>('select now()::text as now');
  return rows[0]!.now;
}

/**
 * Replicas take no writes, nor servers with `default_transaction_read_only`. Rejects after
 * `withinMs`.
 */
export async function probeDatabase(
  pool: Pool,
  withinMs: number,
): Promise<{ isWritable: boolean }> {
  const { rows } = await pool.query<{ writable: boolean }>({
    text: `select ${WRITABLE}`,
    query_timeout: withinMs,
  });
  return { isWritable: rows[0]!.writable };
}

/** Outside the pools, which slow statements may occupy. A refusal is an answer too. */
export function acceptsConnection(
  database: Pick<Database, 'connect'>,
  withinMs: number,
): Promise<boolean> {
  const connecting = database.connect();
  connecting.then((client) => client.end()).catch(() => undefined);
  return withTimeout(connecting, withinMs).then(
    () => true,
    (error: { readonly code?: string }) => error.code !== 'ETIMEDOUT',
  );
}
