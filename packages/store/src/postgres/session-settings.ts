import { GatewayError } from '@gateway/core/errors';
import type pg from 'pg';
import type { DatabaseSettings } from './connection.js';

interface SessionSetting {
  /** The value in `pg_settings`. */
  readonly value: string;
  /** Other values that preserve the meaning of statements, for sessions that a pooler opened. */
  readonly accepts?: RegExp;
}

const on = { value: 'on' };
const off = { value: 'off' };
const any = (value: string) => ({ value, accepts: /^/ });

/**
 * Settings that affect the meaning or plan of statements; unless set, Postgres reads them from its
 * file, the database or the role. `database.options` wins: an operator can choose another
 * statement_timeout.
 */
const SETTINGS: Readonly<Record<string, SessionSetting>> = {
  // Formats of values.
  datestyle: { value: 'ISO, MDY', accepts: /^ISO, (MDY|DMY|YMD)$/ },
  intervalstyle: { value: 'postgres' },
  timezone: { value: 'UTC', accepts: /^((Etc\/)?(UTC|UCT|Universal|Zulu|GMT)|GMT0?)$/i },
  bytea_output: { value: 'hex', accepts: /^(hex|escape)$/ },
  extra_float_digits: { value: '1', accepts: /^[123]$/ },
  standard_conforming_strings: on,
  transform_null_equals: off,
  array_nulls: on,
  // Acknowledged means committed, and committed means that a crash of Postgres loses nothing.
  synchronous_commit: { value: 'on', accepts: /^(on|local|remote_write|remote_apply)$/ },
  default_transaction_isolation: { value: 'read committed' },
  // Migrations, and connections that listen or wait for a lock, have no time limit.
  statement_timeout: any('0'),
  lock_timeout: any('0'),
  idle_session_timeout: any('0'),
  // Planning of statements.
  enable_bitmapscan: on,
  enable_hashagg: on,
  enable_indexonlyscan: on,
  enable_indexscan: on,
  enable_nestloop: on,
  enable_partition_pruning: on,
  enable_sort: on,
  enable_tidscan: on,
  enable_seqscan: any('on'),
  enable_hashjoin: any('on'),
  enable_mergejoin: any('on'),
  plan_cache_mode: any('auto'),
  from_collapse_limit: { value: '8' },
  join_collapse_limit: { value: '8' },
};

/** Settings that a session cannot set, or only a superuser. */
const FIXED: Readonly<Record<string, SessionSetting>> = {
  server_encoding: { value: 'UTF8' },
  // Triggers notify agents of changes.
  session_replication_role: { value: 'origin', accepts: /^(origin|local)$/ },
};

/**
 * Settings that poolers track per client, even in transaction mode: drivers of other languages send
 * them, too.
 */
const KEPT_BY_POOLERS = ['datestyle', 'timezone', 'standard_conforming_strings'];

/**
 * Returns the startup option `options`. `more` (`statement_timeout`: `1000`) and the operator's
 * `own` text come later, and win.
 */
export function sessionOptions(more: Readonly<Record<string, string>>, own = ''): string {
  const settings = {
    ...Object.fromEntries(Object.entries(SETTINGS).map(([name, { value }]) => [name, value])),
    ...more,
  };
  const options = Object.entries(settings).map(
    ([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`,
  );
  return [...options, ...(own ? [own] : [])].join(' ');
}

/** In transaction mode a pooler refuses or mixes up all other parameters. */
export const pooledParameters: Readonly<Record<string, string>> = Object.fromEntries(
  KEPT_BY_POOLERS.map((name) => [name, SETTINGS[name]!.value]),
);

/**
 * Throws `database_setting` for a setting the gateway cannot work with: a pooler dropped it,
 * `database.options` overrides it, or a session cannot set it. One statement.
 */
export async function requireSettings(
  pool: pg.Pool,
  { host, port, database }: DatabaseSettings,
): Promise<void> {
  const all = { ...SETTINGS, ...FIXED };
  const { rows } = await pool.query<{
    name: string;
    value: string;
    source: string;
    owner: string | null;
  }>(
    `select lower(s.name) as name, s.setting as value, s.source,
            (select coalesce(nullif(concat_ws(' in ', 'role ' || quote_ident(r.rolname), 'database ' || quote_ident(d.datname)), ''), 'role all')
               from pg_db_role_setting o left join pg_database d on d.oid = o.setdatabase left join pg_roles r on r.oid = o.setrole
              where (o.setdatabase = 0 or d.datname = current_database()) and (o.setrole = 0 or r.rolname = session_user)
                and exists (select from unnest(o.setconfig) c where lower(split_part(c, '=', 1)) = lower(s.name))
              order by o.setrole <> 0 desc, o.setdatabase <> 0 desc limit 1) as owner
       from pg_settings s where lower(s.name) = any ($1)`,
    [Object.keys(all)],
  );
  for (const { name, value, source, owner } of rows) {
    const { value: needed, accepts } = all[name]!;
    if (accepts ? accepts.test(value) : value === needed) continue;
    if (name === 'server_encoding')
      throw new GatewayError('database_encoding', { host, port, database, encoding: value });
    throw new GatewayError('database_setting', {
      host,
      port,
      name,
      value,
      needed: `"${needed}"`,
      ...originOf(name, source, owner),
    });
  }
}

function originOf(
  name: string,
  source: string,
  owner: string | null,
): { origin: string; remedy: string } {
  if (source === 'client') {
    return {
      origin: 'database.options',
      remedy: `remove ${name} from database.options (--db-options, GATEWAY_DB_OPTIONS)`,
    };
  }
  const after =
    'then start again; a pooler must open new connections first (RECONNECT of PgBouncer)';
  if (owner !== null)
    return { origin: owner, remedy: `run \`alter ${owner} reset ${name}\`, ${after}` };
  return {
    origin: source === 'session' ? 'the connection pooler' : `the ${source}`,
    remedy: `remove it there (connect_query of a pooler, postgresql.conf, or \`alter system reset ${name}\` and \`select pg_reload_conf()\`), ${after}`,
  };
}
