import { createSecureContext, type ConnectionOptions } from 'node:tls';
import { parseDatabaseOptions, type DatabaseOptions } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import { readCertificates, readClientCertificate } from '@gateway/core/http';
import pg from 'pg';

/** How to reach Postgres: the `database` settings. */
export interface DatabaseSettings {
  scheme: string;
  host: string;
  port: number;
  username: string;
  password?: string | undefined;
  database: string;
  /** Query string of a connection URL in libpq's words, for example `sslmode=verify-full&sslrootcert=/etc/ca.pem`. */
  options?: string | undefined;
  max_builder_connections?: number | undefined;
  idle_timeout_seconds?: number | undefined;
}

/** TLS of one connection: without it, or with these options. */
export type Tls = false | ConnectionOptions;

/** What a connection to Postgres is made with. */
export interface DatabaseConnection {
  readonly config: {
    readonly host: string;
    readonly port: number;
    readonly user: string;
    readonly password?: string;
    readonly database: string;
    readonly application_name: string;
    readonly fallback_application_name?: string;
    readonly connectionTimeoutMillis: number;
    readonly keepAlive: boolean;
    readonly keepAliveInitialDelayMillis?: number;
    readonly sslnegotiation: 'direct' | 'postgres';
    readonly enableChannelBinding?: boolean;
  };
  /** Command-line options of the session, `-c search_path=x`. */
  readonly session: string | undefined;
  /** What is tried in turn: `allow` and `prefer` are content with either. */
  readonly ways: readonly [Tls, ...Tls[]];
}

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * The settings as node-postgres wants them. Its own reading of `sslmode` is not used: there `require` verifies what it does not in libpq,
 * `prefer` never goes without TLS, and environment variables decide what is not said.
 *
 * @param name what `pg_stat_activity` shows, unless the options say another
 * @throws GatewayError `invalid_settings` for options that cannot be, `tls_file` for a file that cannot be used
 */
export function databaseConnection(settings: DatabaseSettings, name: string): DatabaseConnection {
  const parsed = parseDatabaseOptions(settings.options ?? '');
  if ('wrong' in parsed) {
    const sentence = `database.options ${parsed.wrong}${parsed.hint ?? ''}`;
    throw new GatewayError('invalid_settings', { problems: [{ key: 'database.options', origin: 'database.options', sentence }] });
  }
  const { options } = parsed;
  return {
    config: {
      host: settings.host,
      port: settings.port,
      user: settings.username,
      ...(settings.password ? { password: settings.password } : {}),
      database: settings.database,
      application_name: options.applicationName ?? name,
      ...(options.fallbackApplicationName ? { fallback_application_name: options.fallbackApplicationName } : {}),
      connectionTimeoutMillis: options.connectTimeoutSeconds === undefined ? CONNECT_TIMEOUT_MS : options.connectTimeoutSeconds * 1000,
      keepAlive: options.keepAlive,
      ...(options.keepAliveIdleSeconds ? { keepAliveInitialDelayMillis: options.keepAliveIdleSeconds * 1000 } : {}),
      sslnegotiation: options.direct ? 'direct' : 'postgres',
      ...(options.channelBinding ? { enableChannelBinding: true } : {}),
    },
    session: options.session,
    ways: waysOf(options),
  };
}

/** https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION */
function waysOf(options: DatabaseOptions): DatabaseConnection['ways'] {
  if (options.sslmode === 'disable') return [false];
  const tls = tlsOf(options);
  if (options.sslmode === 'allow') return [false, tls];
  return options.sslmode === 'prefer' ? [tls, false] : [tls];
}

function tlsOf({ sslmode, sslrootcert, sslcert, sslkey }: DatabaseOptions): ConnectionOptions {
  const file = (name: string, path: string) => ({
    path,
    setting: `${name} in database.options (GATEWAY_DB_OPTIONS)`,
    flag: '--db-options',
  });
  const authority = sslrootcert === undefined || sslrootcert === 'system' ? undefined : readCertificates(file('sslrootcert', sslrootcert));
  const shown = sslcert && sslkey ? readClientCertificate(file('sslcert', sslcert), file('sslkey', sslkey)) : undefined;
  return {
    secureContext: createSecureContext({ ...(authority ? { ca: authority } : {}), ...shown }),
    // An authority that is named is held to, whatever the mode.
    rejectUnauthorized: sslmode === 'verify-full' || authority !== undefined,
    ...(sslmode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
  };
}

/** Which of the ways Postgres takes. */
export interface Negotiated {
  readonly isKnown: boolean;
  /** Finds it by connecting, once. When none works, the error is that of TLS, unless it has none to offer. */
  find(): Promise<Tls>;
  /** Lets it be found again: a connection failed, and Postgres may have been given TLS, or lost it. */
  forget(): void;
}

export function negotiated({ config, ways }: DatabaseConnection): Negotiated {
  let found: Promise<Tls> | undefined;
  const forget = () => (found = undefined);
  return {
    get isKnown() {
      return found !== undefined;
    },
    find() {
      if (found) return found;
      found = firstThatWorks(config, ways);
      found.catch(forget);
      return found;
    },
    forget,
  };
}

async function firstThatWorks(config: DatabaseConnection['config'], ways: readonly Tls[]): Promise<Tls> {
  const failures: { readonly tls: Tls; readonly error: unknown }[] = [];
  for (const tls of ways) {
    const client = new pg.Client({ ...config, ssl: tls });
    client.on('error', () => undefined);
    try {
      await client.connect();
      // It has served its purpose; a connection that failed has no end to wait for.
      client.end().catch(() => undefined);
      return tls;
    } catch (error) {
      failures.push({ tls, error });
    }
  }
  const ofTls = failures.find(({ tls, error }) => tls !== false && !/does not support SSL/.test(String(error)));
  throw (ofTls ?? failures.find(({ tls }) => tls === false))?.error;
}
