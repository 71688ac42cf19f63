import { parseSetting, settings as settingsTable } from '@gateway/core/config';
import type { Open, SecretPlace } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import pg from 'pg';
import { withAdvisoryLock } from '../postgres/advisory-lock.js';
import type { DatabaseSettings } from '../postgres/connection.js';
import { openDatabase, type Database } from '../postgres/database.js';
import { migrateUp } from '../postgres/migrate.js';
import { requireSessions } from '../postgres/pooler.js';
import { explainShardError, sessionOf, shardSettings } from './open-shards.js';
import {
  conflict,
  DEFAULT_SHARD,
  insertShard,
  listShards,
  type NewShard,
  type ShardRow,
} from './shards.js';

const NAME = /^[a-z][a-z0-9_-]{0,39}$/;
/** A name that needs no quotes, because startup options take the `search_path` as it is. */
const SCHEMA = /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/;

export interface AddOptions {
  readonly settings: DatabaseSettings;
  readonly seal: (text: string, place: SecretPlace) => string;
  readonly open: Open;
}

/** With its password in plain text. */
export type GivenShard = Omit<NewShard, 'isCitus'>;

/**
 * Creates its schema if it is missing, has Citus distribute it, creates the tables and only then
 * stores the shard. Safe to repeat after a failure or a stop. False if this shard was added before.
 *
 * @throws GatewayError `wrong_use` for an impossible name; `conflict` if the place or the name is
 *   taken, or another shard is being added; `shard_unusable`; errors of `migrateUp`
 */
export async function addShard(
  control: Database,
  given: GivenShard,
  options: AddOptions,
): Promise<boolean> {
  const { name, address, schema } = given;
  check('name of a shard', name, NAME);
  if (schema !== null) check('name of a schema', schema, SCHEMA);
  if (address) requireOneHost(address.host);
  if (address === null && schema === null)
    throw new GatewayError('wrong_use', {
      sentence: 'a shard needs a place: a database of its own, or a schema in that of the settings',
      fix: 'name a schema, or the host of a database',
    });
  const password = address?.password ?? null;
  const sealed = password === null ? null : options.seal(password, ['shards', name, 'password']);
  const place = { name, schema, address: address && { ...address, password: sealed } };
  const added = await withAdvisoryLock(control.sessions, 'gateway.shards', async (client) => {
    const known = await listShards(client);
    const same = known.find((it) => it.name === name);
    if (same && isAt(same, given)) return false;
    if (same) throw conflict(`there is a shard ${name} at another place`, 'choose another name');
    const settings = shardSettings(place, options);
    try {
      const { isCitus } = await prepareSchema(settings, schema);
      const shard = { ...place, isCitus };
      await createTables(settings, shard, known);
      return await insertShard(client, shard);
    } catch (error) {
      throw explainShardError(error, { name, settings });
    }
  });
  if (added === undefined)
    throw conflict('another shard is being added', 'wait until it is, and try again');
  return added;
}

/** @throws GatewayError `wrong_use` for a list of hosts, or for what is no host */
export function requireOneHost(host: string): void {
  const parsed = parseSetting(settingsTable['database.host'], host, true);
  if ('value' in parsed) return;
  throw new GatewayError('wrong_use', {
    sentence: `the host of a shard ${parsed.wrong}`,
    fix: parsed.hint?.replace(/^; /, '') ?? 'name a host or an IP address',
  });
}

function check(thing: string, name: string, pattern: RegExp): void {
  if (pattern.test(name)) return;
  throw new GatewayError('wrong_use', {
    sentence: `${JSON.stringify(name)} is not possible as the ${thing}`,
    fix: 'use lower-case letters, digits and underscores, and begin with a letter',
  });
}

function isAt({ address, schema }: ShardRow, given: GivenShard): boolean {
  const text = (it: GivenShard['address']) =>
    it && [it.host, it.port, it.username, it.database, it.options].join('\n');
  return schema === given.schema && text(address) === text(given.address);
}

/**
 * Creates the schema if it is missing. With Citus, it becomes a distributed one, whose tables are
 * on one worker. That takes a minute with tables, so it comes first.
 */
async function prepareSchema(
  settings: DatabaseSettings,
  schema: string | null,
): Promise<{ isCitus: boolean }> {
  const database = openDatabase(settings, { poolSize: 2, name: 'gateway' });
  try {
    await requireSessions(database, settings);
    const { rows } = await database.pool.query<{ isCitus: boolean; there: boolean; home: boolean }>(
      `select exists (select from pg_extension where extname = 'citus') as "isCitus",
              exists (select from pg_namespace where nspname = $1) as there,
              to_regclass(quote_ident(coalesce($1, current_schema)) || '.projects') is not null as home`,
      [schema],
    );
    const { isCitus, there, home } = rows[0]!;
    const { host, port, database: name } = settings;
    if (home)
      throw conflict(
        `the schema ${schema ?? 'public'} of ${name} at ${host}:${port} has the control plane of a gateway`,
        'choose another database or schema',
      );
    if (isCitus && schema === null)
      throw conflict(
        `the database ${name} at ${host}:${port} has Citus, where a shard is a schema`,
        'name a schema for the shard',
      );
    if (schema !== null && !there) await database.pool.query(`create schema ${schema}`);
    if (isCitus) await distribute(database, schema!);
    return { isCitus };
  } finally {
    await database.close();
  }
}

/** @see https://docs.citusdata.com/en/stable/develop/api_udf.html#citus-schema-distribute */
async function distribute({ pool }: Database, schema: string): Promise<void> {
  const { rowCount } = await pool.query(
    'select from pg_dist_schema where schemaid = $1::regnamespace',
    [schema],
  );
  if (rowCount === 0) await pool.query('select citus_schema_distribute($1)', [schema]);
}

/** Citus moves a schema to another worker by logical replication, which needs logged tables. */
async function makeMovable({ pool }: Database): Promise<void> {
  await pool.query('alter table metric_samples set logged');
}

/** When the default shard was inserted, which happens once. A restored dump keeps the time. */
function gatewayOf(known: readonly ShardRow[]): string {
  return String(known.find((it) => it.name === DEFAULT_SHARD)!.createdAt.getTime());
}

/** The gateway and the name of the shard in a database, if it has one. */
async function readMark({ pool }: Database): Promise<string[] | undefined> {
  const { rows } = await pool.query<{ mark: string | null }>(
    `select obj_description(to_regclass('gateway_migrations'), 'pg_class') as mark`,
  );
  return /^gateway (\d+), shard (\S+)$/.exec(rows[0]!.mark ?? '')?.slice(1);
}

/**
 * Under whatever address.
 *
 * @throws GatewayError `conflict` if the tables are not there
 */
export async function requireTables(
  database: Database,
  known: readonly ShardRow[],
  { name, settings }: { readonly name: string; readonly settings: DatabaseSettings },
): Promise<void> {
  const [owner, shard] = (await readMark(database)) ?? [];
  if (owner === gatewayOf(known) && shard === name) return;
  const { host, port, database: found } = settings;
  throw conflict(
    `the database ${found} at ${host}:${port} does not have the tables of the shard ${name}`,
    'name the database in which the shard was added, or a copy of it',
  );
}

/**
 * Marks the tables with this gateway and the shard, which reveals the same place under another
 * address.
 */
async function createTables(
  settings: DatabaseSettings,
  shard: NewShard,
  known: readonly ShardRow[],
): Promise<void> {
  const { name } = shard;
  const database = openDatabase(settings, { poolSize: 2, name: 'gateway', ...sessionOf(shard) });
  const gateway = gatewayOf(known);
  try {
    const [owner, other] = (await readMark(database)) ?? [gateway, name];
    if (owner !== gateway)
      throw conflict(
        `the place has the shard ${other} of another gateway`,
        'choose another database or schema',
      );
    if (known.some((it) => it.name === other))
      throw conflict(`the place is the shard ${other}`, 'choose another database or schema');
    await migrateUp(database, { shard: name });
    if (shard.isCitus) await makeMovable(database);
    const mark = pg.escapeLiteral(`gateway ${gateway}, shard ${name}`);
    await database.pool.query(`comment on table gateway_migrations is ${mark}`);
  } finally {
    await database.close();
  }
}
