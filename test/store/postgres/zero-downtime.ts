import type pg from 'pg';
import { declaredLocks, type MigrationLock } from '#store/postgres/migration-files';

/** Observations of one migration, about the tables that were there before it. */
export interface Observed {
  readonly locks: ReadonlyMap<string, MigrationLock['blocks']>;
  readonly scanned: readonly string[];
  readonly rewritten: readonly string[];
}

const ROOT = 'coalesce(pg_partition_root(c.oid), c.oid)::regclass::text';

/**
 * Applies a migration in a transaction that stays open, and reads from Postgres which locks it took,
 * which tables it read in full, and which it wrote again.
 */
export async function observe(client: pg.ClientBase, sql: string): Promise<Observed> {
  const files = () =>
    client.query<{ oid: number; file: number | null; table: string; scans: string }>(
      `select c.oid, pg_relation_filenode(c.oid) as file, ${ROOT} as table, s.seq_scan as scans
       from pg_class c join pg_stat_xact_user_tables s on s.relid = c.oid
       where c.relnamespace = current_schema::regnamespace`,
    );
  await client.query('begin');
  const { rows: before } = await files();
  await client.query(sql);
  const { rows: locks } = await client.query<{ table: string; blocks: MigrationLock['blocks'] }>(
    `select ${ROOT} as table, case when bool_or(mode = 'AccessExclusiveLock') then 'reads and writes' else 'writes' end as blocks
     from pg_locks l join pg_class c on c.oid = l.relation
     where l.pid = pg_backend_pid() and c.relkind in ('r', 'p') and c.oid = any($1::oid[])
       and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
     group by 1`,
    [before.map(({ oid }) => oid)],
  );
  const after = new Map((await files()).rows.map((row) => [row.oid, row]));
  const changed = (what: 'file' | 'scans') => [
    ...new Set(
      before.filter((row) => after.get(row.oid)?.[what] !== row[what]).map((row) => row.table),
    ),
  ];
  return {
    locks: new Map(locks.map(({ table, blocks }) => [table, blocks])),
    scanned: changed('scans'),
    rewritten: changed('file'),
  };
}

/** Returns what a migration does otherwise than its `-- blocks:` lines declare. */
export function undeclared(sql: string, { locks, scanned, rewritten }: Observed): string[] {
  const declared = declaredLocks(sql);
  if (!declared) return ['has no line "-- blocks:"'];
  const of = new Map(declared.map((lock) => [lock.table, lock]));
  return [
    ...[...locks]
      .filter(([table, blocks]) => of.get(table)?.blocks !== blocks)
      .map(([table, blocks]) => `blocks ${blocks} of ${table}`),
    ...declared
      .filter(({ table }) => !locks.has(table))
      .map(({ table }) => `does not block ${table}`),
    ...scanned
      .filter((table) => locks.has(table) && !of.get(table)?.secondsPerMillionRows)
      .map((table) => `reads all of ${table} and declares no seconds per million rows`),
    ...rewritten.map((table) => `writes all of ${table} again`),
  ];
}

const NO_TRANSACTION = /^-- no transaction\n/;

/** Returns the statements of a migration without comments and bodies of functions. */
export function statementsOf(sql: string): string[] {
  return sql
    .replace(/--.*$/gm, '')
    .replace(/\$\$[\s\S]*?\$\$/g, '')
    .split(';')
    .map((statement) => statement.trim().replace(/\s+/g, ' '))
    .filter((statement) => statement !== '');
}

export function hasNoTransaction(sql: string): boolean {
  return NO_TRANSACTION.test(sql);
}

/** Outside of a transaction no timeout ends the wait for a lock. These statements block nothing. */
const FREE = /^(create index concurrently|drop index concurrently|alter type \w+ add value) /i;

/** Statements that can break a gateway of the previous schema. Dropping a check constraint cannot. */
const DISTURBING: readonly (readonly [what: string, pattern: RegExp])[] = [
  [
    'drops or renames',
    /\b(drop (table|column|type|function|index|constraint (?!\w+_check\d*\b)|view|schema)|rename (to|column|constraint|value))\b/i,
  ],
  ['changes the type of a column', /\balter (column )?\w+ (set data )?type\b/i],
  ['makes a column required', /\bset not null\b/i],
  ['takes a default away', /\bdrop default\b/i],
  [
    'adds a required column without a default',
    /\badd (column )?(if not exists )?(?!constraint|check|unique|primary|foreign)\w+ (?![^,;]*\bdefault\b)[^,;]*\bnot null\b/i,
  ],
  [
    'makes unique what was not',
    /\badd (constraint \w+ )?unique\b|\bcreate unique index (concurrently )?(if not exists )?\w+ on (events|event_deliveries|delivery_attempts|endpoints|sources|subscriptions|projects|agents)\b/i,
  ],
];

const CONTRACTS = /^-- contracts: \S/m;

/**
 * Returns the rules of CONTRIBUTING.md, "Change the schema", that the text of a migration breaks.
 */
export function violations(name: string, sql: string): string[] {
  const contracts = CONTRACTS.test(sql);
  const statements = statementsOf(sql);
  return [
    ...(contracts ? [] : DISTURBING)
      .filter(([, pattern]) => statements.some((statement) => pattern.test(statement)))
      .map(([what]) => what),
    ...(contracts === /^\d{4}_contract_/.test(name)
      ? []
      : [
          'is named NNNN_contract_… without a line "-- contracts:", or has the line without the name',
        ]),
    ...(hasNoTransaction(sql) && !statements.every((it) => FREE.test(`${it} `))
      ? ['waits for a lock without a timeout, as it has no transaction']
      : []),
    ...(/\b(lock|statement)_timeout\b/i.test(statements.join(';')) ? ['sets a timeout'] : []),
  ];
}
