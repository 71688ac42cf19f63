import { GatewayError } from '@gateway/core/errors';
import type pg from 'pg';
import type { DatabaseSettings } from './connection.js';

interface SessionSetting {
  /** Required in `pg_settings`. */
  readonly value: string;
  /**
   * Others do not change the meaning of statements. A pooler may have opened the session with them.
   */
  readonly accepts?: RegExp;
}

const on = { value: 'on' };
const off = { value: 'off' };
const any = (value: string) => ({ value, accepts: /^/ });

/**
 * Settings that affect the meaning or plan of statements. A session that omits them gets those of
 * the configuration file, database or role. `database.options` takes precedence, so that an
 * operator can change settings such as statement_timeout.
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
  // An acknowledged message is committed, and a Postgres crash must not lose it.
  synchronous_commit: { value: 'on', accepts: /^(on|local|remote_write|remote_apply)$/ },
  default_transaction_isolation: { value: 'read committed' },
  // No time limit by default, for migrations and for connections that listen or wait for a lock.
  statement_timeout: any('0'),
  lock_timeout: any('0'),
  idle_session_timeout: any('0'),
  idle_in_transaction_session_timeout: any('0'),
  // Plans of statements.
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

/** No session can set these, or only a superuser's. */
const FIXED: Readonly<Record<string, SessionSetting>> = {
  server_encoding: { value: 'UTF8' },
  // Triggers, which notify agents of changes, run only with these values.
  session_replication_role: { value: 'origin', accepts: /^(origin|local)$/ },
};

/**
 * Poolers track these per client even in transaction mode, because drivers for other languages also
 * send them.
 */
const KEPT_BY_POOLERS = ['datestyle', 'timezone', 'standard_conforming_strings'];

/**
 * For the startup option `options`. `more` and the operator's string `own` come last and take
 * precedence.
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

/** In transaction mode, a pooler refuses others or mixes them up between clients. */
export const pooledParameters: Readonly<Record<string, string>> = Object.fromEntries(
  KEPT_BY_POOLERS.map((name) => [name, SETTINGS[name]!.value]),
);

/**
 * One statement.
 * @throws GatewayError `database_setting` if a setting is unsuitable, because a pooler dropped it,
 *   `database.options` overrides it, or no session can set it; `database_encoding` if the encoding
 *   is not UTF-8
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
    `select lower(s.name collate "C") as name, s.setting as value, s.source,
            (select coalesce(nullif(concat_ws(' in ', 'role ' || quote_ident(r.rolname), 'database ' || quote_ident(d.datname)), ''), 'role all')
               from pg_db_role_setting o left join pg_database d on d.oid = o.setdatabase left join pg_roles r on r.oid = o.setrole
              where (o.setdatabase = 0 or d.datname = current_database()) and (o.setrole = 0 or r.rolname = session_user)
                and exists (select from unnest(o.setconfig) c where lower(split_part(c, '=', 1) collate "C") = lower(s.name collate "C"))
              order by o.setrole <> 0 desc, o.setdatabase <> 0 desc limit 1) as owner
       from pg_settings s where lower(s.name collate "C") = any ($1)`,
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
