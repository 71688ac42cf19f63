import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Knex } from 'knex';
import { GatewayError } from '@gateway/core/errors';
import type { Database } from './database.js';
import { isLockCode, LOCK_TIMEOUT_MS, LockedOut, withLocks, type LockWait } from './migrate-locks.js';

const TABLE = 'gateway_migrations';
const FILE = /^(\d{4}_[a-z0-9_]+)\.(up|down)\.sql$/;
/** On the first line of a file. */
const NO_TRANSACTION = /^-- no transaction[^\S\n]*(?:\n|$)/;

/**
 * The folder with the `NNNN_name.{up,down}.sql` pairs: at the top of the repository, or inside of this package where it is installed.
 */
export function migrationsDir(): string {
  const packageDir = fileURLToPath(new URL('../..', import.meta.url));
  const inRepository = resolve(packageDir, '../../migrations');
  return basename(dirname(resolve(packageDir))) === 'packages' && existsSync(inRepository) ? inRepository : join(packageDir, 'migrations');
}

/** Names of the migrations in the folder, in order. */
function namesIn(dir: string): string[] {
  const names = readdirSync(dir).flatMap((file) => FILE.exec(file)?.[1] ?? []);
  return [...new Set(names)].sort();
}

/** Where migrations are, and how they wait for others. */
export interface Migrating extends Partial<LockWait> {
  readonly dir?: string;
}

/** A migration beside agents has its locks within a second or two; whoever holds one for a minute has forgotten it, or is a backup. */
const TRIES_MS = 60_000;

/**
 * Applies all pending migrations in one transaction, all or none; with one among them that cannot be in a transaction, each in its own. Any number
 * of processes may call it at once: one works, the others wait and find nothing to do. Agents and servers may work meanwhile.
 *
 * @returns the names of the applied migrations
 * @throws GatewayError `database_newer` when the database has migrations that this folder lacks, `migration_failed` with the words of Postgres,
 *   `migration_locked` when others did not give up their locks
 */
export function migrateUp(database: Database, { dir = migrationsDir(), onWait, triesMs = TRIES_MS }: Migrating = {}): Promise<string[]> {
  return alone(database, onWait, async () => {
    await refuseNewer(database, dir);
    const latest = () => database.knex.migrate.latest(knexConfig(dir)) as Promise<[number, string[]]>;
    const [, applied] = await withLocks(database, latest, { triesMs, onWait });
    if (applied.length > 0) await analyzeFilled(database);
    return applied;
  });
}

/**
 * Analyzes the tables that hold something. One that is analyzed while it is empty, with its partitions, passes for empty until it is analyzed again, and
 * then statements that were to find a few of its rows walk all of them; of one that was never analyzed Postgres expects some pages.
 */
async function analyzeFilled({ knex }: Database): Promise<void> {
  const { rows } = await knex.raw<{ rows: { tables: string | null }[] }>(
    `select string_agg(c.oid::regclass::text, ', ') as tables from pg_class c
     where c.relnamespace = current_schema::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and (pg_relation_size(c.oid) > 0 or exists (select from pg_partition_tree(c.oid) t where pg_relation_size(t.relid) > 0))`,
  );
  const tables = rows[0]?.tables;
  if (tables) await knex.raw(`analyze ${tables}`);
}

/** What cannot be made again, by up or by agents. */
const KEPT = [
  ...['organisations', 'users', 'projects', 'endpoints', 'subscriptions', 'sources', 'api_keys', 'event_types', 'usage_days'],
  ...['events', 'event_deliveries', 'delivery_attempts', 'quarantined_messages'],
];

/**
 * Undoes the newest migrations, newest first.
 *
 * @param max how many at most
 * @param dropData also those that drop tables with events or settings in them
 * @returns the names of the undone migrations
 * @throws GatewayError `migration_drops` when one of them would, before anything is undone; `database_newer`, `migration_failed`, `migration_locked`
 */
export function migrateDown(
  database: Database,
  { max = 1, dir = migrationsDir(), dropData = false, onWait, triesMs = TRIES_MS }: Migrating & { max?: number; dropData?: boolean } = {},
): Promise<string[]> {
  return alone(database, onWait, async () => {
    await refuseNewer(database, dir);
    if (!dropData) await refuseDrops(database, dir, max);
    const undone: string[] = [];
    const one = () => database.knex.migrate.down(knexConfig(dir)) as Promise<[number, string[]]>;
    while (undone.length < max) {
      const [, names] = await withLocks(database, one, { triesMs, onWait });
      if (names.length === 0) break;
      undone.push(...names);
    }
    return undone;
  });
}

/** Throws `migration_drops` when one of the newest `max` migrations drops a table that holds what cannot be made again. */
async function refuseDrops(database: Database, dir: string, max: number): Promise<void> {
  const applied = (await migrationStates(database, dir)).filter(({ state }) => state === 'applied').map(({ name }) => name);
  const undone = applied.reverse().slice(0, max);
  const refused = new Map<string, readonly string[]>();
  for (const name of undone) {
    const held: string[] = [];
    for (const table of droppedTables(readFileSync(join(dir, `${name}.down.sql`), 'utf8'))) {
      if (KEPT.includes(table) && (await database.pool.query(`select from ${table} limit 1`)).rowCount) held.push(table);
    }
    if (held.length > 0) refused.set(name, held);
  }
  const [first] = refused.keys();
  if (first === undefined) return;
  throw new GatewayError('migration_drops', {
    migrations: [...refused.keys()],
    tables: [...refused.values()].flat(),
    before: undone.indexOf(first),
  });
}

function droppedTables(sql: string): string[] {
  return [...sql.matchAll(/\bdrop table (?:if exists )?([\w, \n]+)/gi)].flatMap(([, names = '']) =>
    names.split(',').map((name) => name.trim().split(/\s/)[0] ?? ''),
  );
}

/**
 * Compares the folder with the database; changes nothing, not even on a database that was never migrated.
 *
 * @returns `pending`: in the folder only; `unknown`: in the database only
 */
export async function pendingMigrations(database: Database, dir = migrationsDir()): Promise<{ pending: string[]; unknown: string[] }> {
  const states = await migrationStates(database, dir);
  const namesOf = (state: MigrationState['state']) => states.filter((it) => it.state === state).map(({ name }) => name);
  return { pending: namesOf('pending'), unknown: namesOf('unknown') };
}

/** A migration of the folder or of the database. */
export interface MigrationState {
  readonly name: string;
  /** `unknown`: applied, and not in the folder: a newer gateway made it. */
  readonly state: 'applied' | 'pending' | 'unknown';
  readonly applied_at: Date | null;
}

/** Every migration in order; changes nothing, not even on a database that was never migrated. */
export async function migrationStates(database: Database, dir = migrationsDir()): Promise<MigrationState[]> {
  const known = namesIn(dir);
  const { rows: tables } = await database.pool.query<{ there: boolean }>(`select to_regclass('${TABLE}') is not null as there`);
  const { rows } = tables[0]?.there
    ? await database.pool.query<{ name: string; at: Date }>(`select name, migration_time as at from ${TABLE}`)
    : { rows: [] };
  const appliedAt = new Map(rows.map(({ name, at }) => [name, at]));
  return [...new Set([...known, ...appliedAt.keys()])].sort().map((name) => ({
    name,
    state: !known.includes(name) ? 'unknown' : appliedAt.has(name) ? 'applied' : 'pending',
    applied_at: appliedAt.get(name) ?? null,
  }));
}

/**
 * Refuses a database that does not fit this version of the gateway.
 *
 * @throws GatewayError `migration_pending` or `database_newer`
 */
export async function requireMigrated(database: Database): Promise<void> {
  const pending = await refuseNewer(database);
  if (pending.length > 0) throw new GatewayError('migration_pending', { pending });
}

/** Throws `database_newer` when the database has migrations that the folder lacks. Returns those that the database lacks. */
async function refuseNewer(database: Database, dir = migrationsDir()): Promise<string[]> {
  const { pending, unknown } = await pendingMigrations(database, dir);
  if (unknown.length > 0) throw new GatewayError('database_newer', { unknown });
  return pending;
}

/**
 * Writes an empty pair of files with the next number.
 *
 * @param name lower-case letters, digits and underscores
 * @returns the paths of the two files
 * @throws GatewayError `wrong_use` for another name
 */
export function createMigration(dir: string, name: string): string[] {
  if (!/^[a-z0-9_]+$/.test(name)) {
    throw new GatewayError('wrong_use', {
      sentence: `"${name}" cannot be the name of a migration`,
      fix: 'use lower-case letters, digits and underscores: add_portal_links',
    });
  }
  mkdirSync(dir, { recursive: true });
  const newest = Number(namesIn(dir).at(-1)?.slice(0, 4) ?? 0);
  const stem = join(dir, `${String(newest + 1).padStart(4, '0')}_${name}`);
  const files = [
    [
      `${stem}.up.sql`,
      '-- What changes, why, and which locks it takes.\n-- (First line "-- no transaction" for a statement that cannot run in one, such as create index concurrently.)\n',
    ],
    [`${stem}.down.sql`, '-- Undoes it.\n'],
  ] as const;
  for (const [path, content] of files) writeFileSync(path, content, { flag: 'wx' });
  return files.map(([path]) => path);
}

/**
 * Runs the work while no other process migrates. The lock belongs to a session of its own, so it goes with the process. Knex's own lock is a row that
 * outlives a killed process; whoever holds ours knows that such a row is stale.
 */
async function alone<T>(database: Database, onWait: LockWait['onWait'], work: () => Promise<T>): Promise<T> {
  const client = await database.connect();
  try {
    const { rows: locks } = await client.query<{ mine: boolean }>(`select pg_try_advisory_lock(hashtext('gateway.migrate')) as mine`);
    if (!locks[0]?.mine) {
      onWait?.('another process is migrating this database');
      await client.query(`select pg_advisory_lock(hashtext('gateway.migrate'))`);
    }
    const { rows } = await client.query<{ there: boolean }>(`select to_regclass('${TABLE}_lock') is not null as there`);
    if (rows[0]?.there) await client.query(`update ${TABLE}_lock set is_locked = 0 where is_locked <> 0`);
    return await work();
  } finally {
    await client.end();
  }
}

function knexConfig(dir: string): Knex.MigratorConfig {
  return {
    tableName: TABLE,
    migrationSource: {
      getMigrations: () => Promise.resolve(namesIn(dir)),
      getMigrationName: (name: string) => name,
      getMigration: (name: string) => Promise.resolve(migration(dir, name)),
    } satisfies Knex.MigrationSource<string>,
  };
}

/** `config` is read by knex and missing in its types. */
function migration(dir: string, name: string): Knex.Migration & { readonly config: { readonly transaction: boolean } } {
  const [up, down] = (['up', 'down'] as const).map((direction) => {
    const file = `${name}.${direction}.sql`;
    return { file, sql: readFileSync(join(dir, file), 'utf8') };
  }) as [MigrationFile, MigrationFile];
  return {
    config: { transaction: ![up, down].some(({ sql }) => NO_TRANSACTION.test(sql)) },
    up: (knex) => run(knex, up),
    down: (knex) => run(knex, down),
  };
}

interface MigrationFile {
  readonly file: string;
  readonly sql: string;
}

/** Several statements in one message are a transaction to Postgres, so those that cannot be in one are sent one by one. */
async function run(knex: Knex, { file, sql }: MigrationFile): Promise<void> {
  const apart = NO_TRANSACTION.test(sql);
  if (!apart) await knex.raw(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
  let at = 0;
  for (const statement of apart ? sql.split(/;[ \t]*$/m) : [sql]) {
    const from = sql.indexOf(statement, at);
    at = from + statement.length;
    if (withoutComments(statement) === '') continue;
    await knex.raw(statement).catch((error: unknown) => {
      throw failed(error, { file, sql, statement, from, apart });
    });
  }
}

/** What Postgres refused, with the file and the line; what has to do with reaching Postgres comes back as it is. */
function failed(
  error: unknown,
  { file, sql, statement, from, apart }: MigrationFile & { statement: string; from: number; apart: boolean },
): unknown {
  const { code = '', message = '', position, detail, hint } = error as Partial<Record<string, string>>;
  if (!apart && isLockCode(code)) return new LockedOut(file, error);
  // https://www.postgresql.org/docs/current/errcodes-appendix.html: connections, resources, an operator's intervention, the system
  if (!/^[0-9A-Z]{5}$/.test(code) || /^(08|53|57|58)/.test(code)) return error;
  // Knex writes the statement before the words of Postgres.
  const words = message.startsWith(statement) ? message.slice(statement.length).replace(/^ - /, '') : message;
  const line = sql.slice(0, from + Number(position ?? 1) - 1).split('\n').length;
  const reason = [position ? `${words} (line ${line})` : words, detail, hint].filter(Boolean).join('; ');
  const left = apart ? 'what it did before that statement stays' : 'nothing of this run stays';
  return new GatewayError('migration_failed', { file, reason, left }, { cause: error });
}

function withoutComments(sql: string): string {
  return sql.replace(/^\s*--.*$/gm, '').trim();
}
