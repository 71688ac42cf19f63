import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Knex } from 'knex';
import { explainDatabaseError, GatewayError } from '@gateway/core/errors';
import { tryTransactionLock } from './advisory-lock.js';
import { hasTable, type DatabaseSettings } from './connection.js';
import type { Database } from './database.js';
import {
  estimateLocks,
  type LockEstimate,
  migrationsIn,
  namesIn,
  type ReadMigration,
  statementsOf,
} from './migration-files.js';
import { requireSessions } from './pooler.js';
import { readCollationChange, type CollationChange } from './server-facts.js';
import { DEADLOCK_DETECTED, LOCK_NOT_AVAILABLE, sqlState } from './sqlstate.js';

const TABLE = 'gateway_migrations';
/** For statements that cannot run in a transaction. */
const NO_TRANSACTION = /^-- no transaction[^\S\n]*(?:\n|$)/;

/** In the root of the repository or in the installed package. */
export function migrationsDir(): string {
  const packageDir = fileURLToPath(new URL('../..', import.meta.url));
  const inRepository = resolve(packageDir, '../../migrations');
  return basename(dirname(resolve(packageDir))) === 'packages' && existsSync(inRepository)
    ? inRepository
    : join(packageDir, 'migrations');
}

export interface Migrating extends Partial<LockWait> {
  readonly dir?: string;
  /** Other than the default one. It has only the data plane. */
  readonly shard?: string | undefined;
}

/**
 * Agents release locks within a second or two; a longer lock belongs to a backup or an abandoned
 * session.
 */
const TRIES_MS = 60_000;

/**
 * Returns the names of the applied migrations. They run in one transaction, or one each if any
 * cannot run in a transaction. Safe to run concurrently, and while agents and servers run.
 * @throws GatewayError `database_newer` if the database has unknown migrations; `migration_failed`;
 *   `migration_locked` if a lock is unavailable for `triesMs`; `shard_schema`
 */
export function migrateUp(
  database: Database,
  { dir = migrationsDir(), shard, onWait, triesMs = TRIES_MS }: Migrating = {},
): Promise<string[]> {
  return withMigrationLock(database, { dir, shard, onWait }, async () => {
    const latest = () =>
      database.knex.migrate.latest(knexConfig(dir, shard)) as Promise<[number, string[]]>;
    const [, applied] = await withLocks(database, latest, { triesMs, onWait });
    if (applied.length > 0) await analyzeFilled(database);
    return applied;
  });
}

/** A table analyzed while empty counts as empty until the next analyze, and plans would scan it. */
async function analyzeFilled({ knex }: Database): Promise<void> {
  const { rows } = await knex.raw<{ rows: { tables: string | null }[] }>(
    `select string_agg(c.oid::regclass::text, ', ') as tables from pg_class c
     where c.relnamespace = current_schema::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and (pg_relation_size(c.oid) > 0 or exists (select from pg_partition_tree(c.oid) t where pg_relation_size(t.relid) > 0))`,
  );
  const tables = rows[0]?.tables;
  if (tables) await knex.raw(`analyze ${tables}`);
}

/**
 * The newest `max` migrations. `dropData` allows dropping tables with rows that nothing recreates.
 * Throws `migration_drops` before any change, and what `migrateUp` throws.
 */
export function migrateDown(
  database: Database,
  {
    max = 1,
    dir = migrationsDir(),
    shard,
    dropData = false,
    onWait,
    triesMs = TRIES_MS,
  }: Migrating & { max?: number; dropData?: boolean } = {},
): Promise<string[]> {
  return withMigrationLock(database, { dir, shard, onWait }, async () => {
    if (!dropData) await checkDrops(database, { dir, shard }, max);
    const undone: string[] = [];
    const one = () =>
      database.knex.migrate.down(knexConfig(dir, shard)) as Promise<[number, string[]]>;
    while (undone.length < max) {
      const [, names] = await withLocks(database, one, { triesMs, onWait });
      if (names.length === 0) break;
      undone.push(...names);
    }
    return undone;
  });
}

/**
 * Throws `migration_drops` for a table with rows, unless a `-- rebuilt:` line says that `up` or
 * agents recreate them.
 */
async function checkDrops(
  database: Database,
  { dir, shard }: Required<Pick<Migrating, 'dir' | 'shard'>>,
  max: number,
): Promise<void> {
  const files = migrationsIn(dir, shard);
  const applied = (await migrationStates(database, dir, shard))
    .filter(({ state }) => state === 'applied')
    .map(({ name }) => name);
  const undone = applied.reverse().slice(0, max);
  const drops: { name: string; table: string }[] = [];
  for (const name of undone) {
    for (const table of droppedTables(files.get(name)!('down'))) {
      if ((await database.pool.query(`select from ${table} limit 1`)).rowCount)
        drops.push({ name, table });
    }
  }
  const [first] = drops;
  if (!first) return;
  const migrations = [...new Set(drops.map(({ name }) => name))];
  throw new GatewayError('migration_drops', {
    migrations,
    tables: drops.map(({ table }) => table),
    before: undone.indexOf(first.name),
  });
}

export function droppedTables(sql: string): string[] {
  const namesOf = (pattern: RegExp) =>
    [...sql.matchAll(pattern)].flatMap(([, names = '']) =>
      names.split(',').map((name) => name.trim().split(/\s/)[0] ?? ''),
    );
  const rebuilt = namesOf(/^-- rebuilt: (.*)$/gm);
  return namesOf(/^drop table (?:if exists )?([\w, \n]+)/gim).filter(
    (table) => !rebuilt.includes(table),
  );
}

/** `pending` ones are only in the folder, `unknown` ones only in the database. */
export async function pendingMigrations(
  database: Database,
  dir = migrationsDir(),
  shard?: Migrating['shard'],
): Promise<{ pending: string[]; unknown: string[] }> {
  const states = await migrationStates(database, dir, shard);
  const namesOf = (state: MigrationState['state']) =>
    states.filter((it) => it.state === state).map(({ name }) => name);
  return { pending: namesOf('pending'), unknown: namesOf('unknown') };
}

export interface MigrationState {
  readonly name: string;
  readonly state: 'applied' | 'pending' | 'unknown';
  readonly applied_at: Date | null;
}

/** In order. Also of a database that was never migrated. */
export async function migrationStates(
  database: Database,
  dir = migrationsDir(),
  shard?: Migrating['shard'],
): Promise<MigrationState[]> {
  const known = [...migrationsIn(dir, shard).keys()];
  const { rows } = (await hasTable(database.pool, TABLE))
    ? await database.pool.query<{ name: string; at: Date }>(
        `select name, migration_time as at from ${TABLE}`,
      )
    : { rows: [] };
  const appliedAt = new Map(rows.map(({ name, at }) => [name, at]));
  return [...new Set([...known, ...appliedAt.keys()])].sort().map((name) => ({
    name,
    state: !known.includes(name) ? 'unknown' : appliedAt.has(name) ? 'applied' : 'pending',
    applied_at: appliedAt.get(name) ?? null,
  }));
}

/** `locks` is null unless the migration is pending and declares them. */
export interface MigrationStatus extends MigrationState {
  readonly locks: readonly LockEstimate[] | null;
}

export async function migrationStatus(
  database: Database,
  dir = migrationsDir(),
  shard?: Migrating['shard'],
): Promise<MigrationStatus[]> {
  const states = await migrationStates(database, dir, shard);
  const pending = states.filter(({ state }) => state === 'pending').map(({ name }) => name);
  const files = migrationsIn(dir, shard);
  const locks = await estimateLocks(database, (name) => files.get(name)!('up'), pending);
  return states.map((state) => ({ ...state, locks: locks.get(state.name) ?? null }));
}

export interface Readiness {
  /** Migrations of newer versions, which only add. */
  readonly newer: readonly string[];
  readonly collation: CollationChange | undefined;
}

/**
 * Requires persistent sessions, the schema of a shard and all migrations. Errors name the address.
 */
export async function requireReady(
  database: Database,
  settings: DatabaseSettings,
  shard?: Migrating['shard'],
): Promise<Readiness> {
  try {
    await requireSessions(database, settings);
    await requireSchema(database, shard);
    const newer = await requireMigrated(database, undefined, shard);
    return { newer, collation: await readCollationChange(database.pool) };
  } catch (error) {
    throw explainDatabaseError(error, settings);
  }
}

/**
 * A pooler in transaction mode drops the `search_path`, and the tables of another shard would be
 * used.
 * @throws GatewayError `shard_schema`
 */
async function requireSchema({ pool, schema }: Database, shard: Migrating['shard']): Promise<void> {
  if (shard === undefined || schema === undefined) return;
  const { rows } = await pool.query<{ found: string | null }>('select current_schema() as found');
  const found = rows[0]!.found ?? 'none';
  if (found !== schema) throw new GatewayError('shard_schema', { name: shard, found, schema });
}

/** These remove what an earlier version needs. All others only add. */
const CONTRACTS = /^\d{4}_contract_/;

/**
 * Migrations of newer versions, which only add. Throws `migration_pending`, and `database_newer` if
 * one of them removes what this version may need.
 */
export async function requireMigrated(
  database: Database,
  dir = migrationsDir(),
  shard?: Migrating['shard'],
): Promise<readonly string[]> {
  const { pending, unknown } = await pendingMigrations(database, dir, shard);
  const of = shard === undefined ? {} : { shard };
  if (unknown.some((name) => CONTRACTS.test(name)))
    throw new GatewayError('database_newer', { unknown, ...of });
  if (pending.length > 0) throw new GatewayError('migration_pending', { pending, ...of });
  return unknown;
}

/**
 * The files have the next number and contain only comments.
 * @throws GatewayError `wrong_use` for an invalid name
 */
export function createMigration(dir: string, name: string): string[] {
  if (!/^[a-z0-9_]+$/.test(name)) {
    throw new GatewayError('wrong_use', {
      sentence: `"${name}" is not a valid migration name`,
      fix: 'use lower-case letters, digits and underscores: add_portal_links',
    });
  }
  mkdirSync(dir, { recursive: true });
  const newest = Number(namesIn(dir).at(-1)?.slice(0, 4) ?? 0);
  const stem = join(dir, `${String(newest + 1).padStart(4, '0')}_${name}`);
  const up =
    '-- What changes, and why.\n-- blocks: nothing\n-- (First line "-- no transaction" for a statement that cannot run in one, such as create index concurrently.)\n';
  const files = { [`${stem}.up.sql`]: up, [`${stem}.down.sql`]: '-- Undoes it.\n' };
  for (const [path, content] of Object.entries(files)) writeFileSync(path, content, { flag: 'wx' });
  return Object.keys(files);
}

/**
 * A transaction of its own holds the advisory lock. Also resets Knex's lock, a row that survives a
 * killed process.
 * @throws GatewayError `shard_schema`; `database_newer`, because only the version that has the
 *   unknown migrations can migrate
 */
async function withMigrationLock<T>(
  database: Database,
  { dir, shard, onWait }: Pick<Migrating, 'shard' | 'onWait'> & { readonly dir: string },
  work: () => Promise<T>,
): Promise<T> {
  const client = await database.connect();
  try {
    await client.query('begin');
    // Polled: a statement that waits has a snapshot, for which `create index concurrently` of the
    // other process would wait.
    for (
      let isFirst = true;
      !(await tryTransactionLock(client, 'gateway.migrate'));
      isFirst = false
    ) {
      if (isFirst) onWait?.('another process is migrating this database');
      await sleep(PAUSE_MS);
    }
    if (await hasTable(database.pool, `${TABLE}_lock`))
      await database.pool.query(`update ${TABLE}_lock set is_locked = 0 where is_locked <> 0`);
    await requireSchema(database, shard);
    const { unknown } = await pendingMigrations(database, dir, shard);
    if (unknown.length > 0)
      throw new GatewayError('database_newer', { unknown, ...(shard !== undefined && { shard }) });
    return await work();
  } finally {
    await client.end();
  }
}

/**
 * Statements on the table queue up meanwhile, so it must be less than the second by which an
 * upgrade may delay them.
 */
const LOCK_TIMEOUT_MS = 500;

const PAUSE_MS = 1_000;

class LockNotAcquired extends Error {
  constructor(
    readonly file: string,
    cause: unknown,
  ) {
    super(`${file} could not get a lock`, { cause });
  }
}

interface LockWait {
  readonly triesMs: number;
  readonly onWait?: ((why: string) => void) | undefined;
}

/**
 * Tries again after a lock timeout or a deadlock with an agent.
 * @throws GatewayError `migration_locked` after `triesMs`
 */
async function withLocks<T>(
  database: Pick<Database, 'pool'>,
  migrate: () => Promise<T>,
  { triesMs, onWait }: LockWait,
): Promise<T> {
  const startedAtMs = performance.now();
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await migrate();
    } catch (error) {
      if (!(error instanceof LockNotAcquired)) throw error;
      const { file } = error;
      const elapsedMs = performance.now() - startedAtMs;
      if (elapsedMs >= triesMs) {
        const details = {
          file,
          seconds: Math.round(elapsedMs / 1000),
          holders: await lockHolders(database),
        };
        throw new GatewayError('migration_locked', details, { cause: error });
      }
      if (isFirst)
        onWait?.(
          `other sessions hold locks that ${file} needs; it is tried again for ${Math.ceil(triesMs / 1000)} s`,
        );
      await sleep(PAUSE_MS);
    }
  }
}

/** Sessions with the longest transactions; none if Postgres hides other users' sessions. */
async function lockHolders({ pool }: Pick<Database, 'pool'>): Promise<string[]> {
  const { rows } = await pool
    .query<{ holder: string }>(
      `select format('pid %s (%s, %s for %s s)', pid, coalesce(nullif(application_name, ''), usename), state, extract(epoch from now() - xact_start)::int) as holder
       from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and xact_start < now() - interval '1 second'
       order by xact_start limit 3`,
    )
    .catch(() => ({ rows: [] }));
  return rows.map(({ holder }) => holder);
}

function knexConfig(dir: string, shard: Migrating['shard']): Knex.MigratorConfig {
  const files = migrationsIn(dir, shard);
  return {
    tableName: TABLE,
    migrationSource: {
      getMigrations: () => Promise.resolve([...files.keys()]),
      getMigrationName: (name: string) => name,
      getMigration: (name: string) => Promise.resolve(migration(name, files.get(name)!)),
    } satisfies Knex.MigrationSource<string>,
  };
}

/** Knex reads `config` although its types omit it. */
function migration(
  name: string,
  read: ReadMigration,
): Knex.Migration & { readonly config: { readonly transaction: boolean } } {
  const [up, down] = (['up', 'down'] as const).map((way) => ({
    file: `${name}.${way}.sql`,
    sql: read(way),
  }));
  return {
    config: { transaction: ![up!, down!].some(({ sql }) => NO_TRANSACTION.test(sql)) },
    up: (knex) => run(knex, up!),
    down: (knex) => run(knex, down!),
  };
}

/** Behind a pooler, those of the role or database apply. The operator's stay. */
const LIFT_LIMITS = `select set_config(name, '0', true) from pg_settings where name in ('statement_timeout', 'transaction_timeout') and source <> 'client'`;

/**
 * One by one: Postgres would run the statements of one message in a transaction, and Citus sends
 * the message of an `alter table` to the workers whole.
 */
async function run(
  knex: Knex,
  { file, sql }: { readonly file: string; readonly sql: string },
): Promise<void> {
  const inTransaction = !NO_TRANSACTION.test(sql);
  if (inTransaction) {
    await knex.raw(LIFT_LIMITS);
    await knex.raw(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
  }
  let at = 0;
  for (const statement of statementsOf(sql)) {
    const from = at;
    at += statement.length;
    if (statement.replace(/^\s*--.*$/gm, '').trim() === '') continue;
    await knex.raw(statement).catch((error: unknown) => {
      const { message = '', position, detail, hint } = error as Partial<Record<string, string>>;
      const code = sqlState(error);
      if (inTransaction && (code === DEADLOCK_DETECTED || code === LOCK_NOT_AVAILABLE))
        throw new LockNotAcquired(file, error);
      // Lost connection, insufficient resources, operator intervention, system error.
      if (code === undefined || /^(08|53|57|58)/.test(code)) throw error;
      // Knex prepends the statement to the Postgres message.
      const words = message.startsWith(statement)
        ? message.slice(statement.length).replace(/^ - /, '')
        : message;
      const line = sql.slice(0, from + Number(position ?? 1) - 1).split('\n').length;
      const reason = [position ? `${words} (line ${line})` : words, detail, hint]
        .filter(Boolean)
        .join('; ');
      const left = inTransaction
        ? 'this run was rolled back'
        : 'its earlier statements remain in effect';
      throw new GatewayError('migration_failed', { file, reason, left }, { cause: error });
    });
  }
}
