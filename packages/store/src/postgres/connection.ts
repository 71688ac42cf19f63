import { createSecureContext, type ConnectionOptions } from 'node:tls';
import { parseDatabaseOptions, type Config, type LibpqOptions } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import { readCertificates, readClientCertificate } from '@gateway/core/http';
import { changingPassword, PASSWORD_COMMAND_MS } from '@gateway/core/process';
import type pg from 'pg';

export type DatabaseSettings = Pick<
  Config['database'],
  'scheme' | 'host' | 'port' | 'username' | 'database'
> &
  Partial<Config['database']>;

/** A pool or one of its connections. */
export type Querier = Pick<pg.Pool, 'query'>;

/** In the schema that is found first. A database that awaits a migration may lack it. */
export async function hasTable(on: Querier, name: string): Promise<boolean> {
  const { rows } = await on.query<{ has: boolean }>('select to_regclass($1) is not null as has', [
    name,
  ]);
  return rows[0]!.has;
}

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Without node-postgres's own `sslmode`: its `require` verifies more than in libpq, and environment
 * variables fill in missing values.
 * @throws GatewayError `invalid_settings` if `database.options` are invalid; `tls_file`
 */
export function databaseConnection(settings: DatabaseSettings, name: string) {
  const parsed = parseDatabaseOptions(settings.options ?? '');
  if ('wrong' in parsed) {
    const sentence = `database.options ${parsed.wrong}${parsed.hint ?? ''}`;
    throw new GatewayError('invalid_settings', {
      problems: [{ key: 'database.options', origin: 'database.options', sentence }],
    });
  }
  const { options } = parsed;
  const password = changingPassword('database', settings);
  return {
    host: settings.host,
    port: settings.port,
    user: settings.username,
    ...(password
      ? { password: password.read }
      : settings.password
        ? { password: settings.password }
        : {}),
    database: settings.database,
    application_name: options.applicationName ?? name,
    ...(options.fallbackApplicationName
      ? { fallback_application_name: options.fallbackApplicationName }
      : {}),
    connectionTimeoutMillis:
      options.connectTimeoutSeconds === undefined
        ? CONNECT_TIMEOUT_MS + (settings.password_command === undefined ? 0 : PASSWORD_COMMAND_MS)
        : options.connectTimeoutSeconds * 1000,
    keepAlive: options.keepAlive,
    ...(options.keepAliveIdleSeconds
      ? { keepAliveInitialDelayMillis: options.keepAliveIdleSeconds * 1000 }
      : {}),
    sslnegotiation: options.direct ? 'direct' : 'postgres',
    ...(options.channelBinding ? { enableChannelBinding: true } : {}),
    session: options.session,
    ssl: tlsOf(options),
  } as const satisfies pg.ClientConfig & Readonly<Record<string, unknown>>;
}

/**
 * Bypasses the pooler. Undefined without `database.direct.host`.
 * @throws GatewayError `invalid_settings` for options that a pooler would not keep
 */
export function directConnection<
  Connection extends pg.ClientConfig & { readonly session: string | undefined },
>({ direct, pooled }: DatabaseSettings, connection: Connection): Connection | undefined {
  if (direct?.host === undefined && !pooled) return undefined;
  if (connection.session) {
    const setting = pooled ? 'database.pooled' : 'database.direct.host';
    const sentence = `database.options holds options=…, which a pooler in transaction mode (${setting} is set) would not keep; set them for the role in Postgres`;
    throw new GatewayError('invalid_settings', {
      problems: [{ key: 'database.options', origin: 'database.options', sentence }],
    });
  }
  return direct?.host === undefined
    ? undefined
    : { ...connection, host: direct.host, port: direct.port };
}

/**
 * For a libpq `sslmode`. `allow` connects without TLS and `prefer` with it; neither has a fallback.
 *
 * @see https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION
 */
function tlsOf({ sslmode, sslrootcert, sslcert, sslkey }: LibpqOptions): false | ConnectionOptions {
  if (sslmode === 'disable' || sslmode === 'allow') return false;
  const file = (name: string, path: string) => ({
    path,
    setting: `${name} in database.options (GATEWAY_DB_OPTIONS)`,
    flag: '--db-options',
  });
  const authority =
    sslrootcert === undefined || sslrootcert === 'system'
      ? undefined
      : readCertificates(file('sslrootcert', sslrootcert));
  const client =
    sslcert && sslkey
      ? readClientCertificate(file('sslcert', sslcert), file('sslkey', sslkey))
      : undefined;
  return {
    secureContext: createSecureContext({ ...(authority ? { ca: authority } : {}), ...client }),
    // If a certificate authority is given, verify against it in every mode.
    rejectUnauthorized: sslmode === 'verify-full' || authority !== undefined,
    ...(sslmode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
  };
}
