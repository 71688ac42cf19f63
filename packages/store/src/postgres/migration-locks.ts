import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from './database.js';

/** On a table of an existing schema, as declared by the migration's `-- blocks:` line. */
export interface MigrationLock {
  readonly table: string;
  /** Statements of agents and servers that wait for the end of the migration. */
  readonly blocks: 'writes' | 'reads and writes';
  /** Measured; 0 if the time does not depend on the rows. */
  readonly secondsPerMillionRows: number;
}

export interface LockEstimate extends Omit<MigrationLock, 'secondsPerMillionRows'> {
  /** An estimate of Postgres. */
  readonly rows: number;
  readonly seconds: number;
}

const LINE = /^-- blocks: (.*)$/gm;
const BLOCKS = /^(writes|reads and writes) of ([a-z_, ]+?)(?:, ([\d.]+) s per million rows)?$/;

/** Undefined without a `-- blocks:` line. Throws for a line that cannot be read. */
export function declaredLocks(sql: string): MigrationLock[] | undefined {
  const lines = [...sql.matchAll(LINE)].map(([, text = '']) => text);
  if (lines.length === 0) return undefined;
  return lines.flatMap((text) => {
    if (text === 'nothing') return [];
    const [, blocks, tables, seconds = '0'] = BLOCKS.exec(text) ?? [];
    if (!blocks || !tables) throw new Error(`"-- blocks: ${text}" cannot be read`);
    return tables.split(', ').map((table) => ({
      table,
      blocks: blocks as MigrationLock['blocks'],
      secondsPerMillionRows: Number(seconds),
    }));
  });
}

/** Uses the row counts that Postgres keeps; scans no table. */
export async function estimateLocks(
  { pool }: Pick<Database, 'pool'>,
  folderOf: (name: string) => string,
  names: readonly string[],
): Promise<ReadonlyMap<string, LockEstimate[] | undefined>> {
  const { rows: counted } = await pool.query<{ table: string; rows: number }>(
    `select coalesce(pg_partition_root(c.oid), c.oid)::regclass::text as table,
       sum(greatest(c.reltuples, s.n_live_tup, 0))::float8 as rows
     from pg_class c left join pg_stat_user_tables s on s.relid = c.oid
     where c.relkind = 'r' and c.relnamespace = current_schema::regnamespace group by 1`,
  );
  const rowsOf = new Map(counted.map(({ table, rows }) => [table, rows]));
  return new Map(
    names.map((name) => [
      name,
      declaredLocks(readFileSync(join(folderOf(name), `${name}.up.sql`), 'utf8'))?.map(
        ({ table, blocks, secondsPerMillionRows }) => {
          const rows = rowsOf.get(table) ?? 0;
          const seconds = Math.round((rows / 1e5) * secondsPerMillionRows) / 10;
          return { table, blocks, rows, seconds };
        },
      ),
    ]),
  );
}
