import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from './database.js';
import { DATA_TABLES } from './planes.js';

const FILE = /^(\d{4}_[a-z0-9_]+)\.(up|down)\.sql$/;

export function namesIn(dir: string): string[] {
  const names = readdirSync(dir).flatMap((file) => FILE.exec(file)?.[1] ?? []);
  return [...new Set(names)].sort();
}

export type ReadMigration = (way: 'up' | 'down') => string;

/** Migrations without such a line are older than shards, and may change tables of both planes. */
const PLANE = /^-- plane: (control|data)$/m;
/** The first migration of a shard. */
const BASE = '0051_data_plane';

/**
 * In order, by name. A shard other than the default one has only the data plane: its first
 * migration makes the tables as those that are older than shards do, and later ones name their
 * plane.
 */
export function migrationsIn(
  dir: string,
  shard: string | undefined,
): ReadonlyMap<string, ReadMigration> {
  const names = namesIn(dir);
  const read =
    (name: string): ReadMigration =>
    (way) =>
      readFileSync(join(dir, `${name}.${way}.sql`), 'utf8');
  if (shard === undefined) return new Map(names.map((name) => [name, read(name)]));
  const planes = new Map(names.map((name) => [name, PLANE.exec(read(name)('up'))?.[1]]));
  const of = (plane: string | undefined) => names.filter((name) => planes.get(name) === plane);
  const base: ReadMigration = (way) => baseOf(of(undefined).map((name) => read(name)('up')))[way];
  return new Map([[BASE, base], ...of('data').map((name) => [name, read(name)] as const)]);
}

/** Statements end with a semicolon at the end of a line, outside of a function body. */
export function statementsOf(sql: string): string[] {
  return sql.match(/(?:\$\$[^]*?\$\$|[^])+?(?:;[ \t]*$|(?![^]))/gm) ?? [];
}

const SUBJECT =
  /^(?:create (?:unlogged )?table|alter table|create index \w+ on) (\w+?)(?:_default)?\b/;

/** Citus refuses to add a check together with its columns. */
function singly(statement: string): string[] {
  const [, alter, parts = ''] = /^(alter table \w+)\s+(add [^]*);$/.exec(statement) ?? [];
  return alter
    ? parts.split(/,\s*(?=add (?:column|check)\b)/).map((part) => `${alter} ${part};`)
    : [statement];
}

/** The part that makes the data plane. An empty database needs no statement that changes rows. */
function baseOf(files: readonly string[]): Readonly<Record<'up' | 'down', string>> {
  const statements = files
    .flatMap(statementsOf)
    .map((statement) => statement.replace(/^\s*--.*$/gm, '').trim())
    .flatMap(singly);
  const isOfTable = (statement: string) =>
    DATA_TABLES.includes(SUBJECT.exec(statement)?.[1] ?? '') &&
    // Citus refuses it.
    !statement.includes(' set storage ');
  const ofTables = statements.filter(isOfTable).join('\n');
  const named = (pattern: RegExp, text: string) =>
    [...text.matchAll(pattern)].map(([, name]) => name!);
  const uses = (name: string) => new RegExp(`\\b${name}\\b`).test(ofTables);
  const isNeeded = (statement: string) =>
    isOfTable(statement) ||
    statement.startsWith('create or replace function ensure_day') ||
    named(/^(?:create type|drop index) (\w+)/g, statement).some(uses);
  const up = statements.filter(isNeeded).join('\n');
  const tables = named(/^create (?:unlogged )?table (\w+) \(/gm, ofTables).join(', ');
  const types = named(/^create type (\w+)/gm, up).join(', ');
  return {
    up: `-- blocks: nothing\n${up}\nselect ensure_day((now() at time zone 'UTC')::date + n) from generate_series(0, 7) n;\n`,
    down: `drop function ensure_day(date);\ndrop table ${tables};\ndrop type ${types};\n`,
  };
}

/** Declared by the migration's `-- blocks:` line. */
export interface MigrationLock {
  readonly table: string;
  /** They wait for the end of the migration. */
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

/** By the row counts that Postgres keeps. */
export async function estimateLocks(
  { pool }: Pick<Database, 'pool'>,
  sqlOf: (name: string) => string,
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
      declaredLocks(sqlOf(name))?.map(({ table, blocks, secondsPerMillionRows }) => {
        const rows = rowsOf.get(table) ?? 0;
        const seconds = Math.round((rows / 1e5) * secondsPerMillionRows) / 10;
        return { table, blocks, rows, seconds };
      }),
    ]),
  );
}
