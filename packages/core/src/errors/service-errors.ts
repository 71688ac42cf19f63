import { composed, row } from './error-row.js';

export interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly username: string;
}
export interface KvAddress {
  readonly host: string;
  readonly port: number;
  /** Addresses of the Sentinels that were asked. */
  readonly sentinels?: string;
  /** Addresses of the nodes of the Cluster that were asked. */
  readonly nodes?: string;
}
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
}
function kvName({ host, port, sentinels, nodes }: KvAddress): string {
  if (nodes) return `the Redis Cluster with ${nodes}`;
  return sentinels ? `the Redis master behind the Sentinels ${sentinels}` : `Redis at ${host}:${port}`;
}

function kvSettings({ sentinels, nodes }: KvAddress): string {
  if (nodes) return 'kv.cluster.addresses (--kv-cluster-addresses, GATEWAY_KV_CLUSTER_ADDRESSES)';
  return sentinels
    ? 'kv.sentinel.addresses (--kv-sentinel-addresses, GATEWAY_KV_SENTINEL_ADDRESSES) and kv.sentinel.master_name (--kv-sentinel-master-name, GATEWAY_KV_SENTINEL_MASTER_NAME)'
    : 'kv.host (--kv-host, GATEWAY_KV_HOST), kv.port (--kv-port, GATEWAY_KV_PORT) and kv.scheme (--kv-scheme, GATEWAY_KV_SCHEME; rediss for TLS)';
}

/** Postgres, KV, the SMTP server, and the ports that the gateway listens on. */
export const serviceErrors = {
  database_unreachable: row<DatabaseAddress & { reason: string }>({
    http: 503,
    message: ({ host, port, reason }) => `Postgres at ${host}:${port} cannot be reached: ${reason}`,
    fix: () => 'check that it runs, and correct database.host (--db-host, GATEWAY_DB_HOST) and database.port (--db-port, GATEWAY_DB_PORT)',
  }),
  database_tls: row<DatabaseAddress & { reason: string }>({
    http: 503,
    message: ({ host, port, reason }) => `TLS with Postgres at ${host}:${port} failed: ${reason}`,
    fix: () =>
      'correct sslmode, sslrootcert, sslcert and sslkey in database.options (--db-options, GATEWAY_DB_OPTIONS), and set database.host to the host that its certificate is for',
  }),
  database_refused: row<DatabaseAddress>({
    http: 503,
    message: ({ host, port, username }) => `Postgres at ${host}:${port} refused the user ${username}`,
    fix: () => 'check database.username (--db-username, GATEWAY_DB_USERNAME) and database.password (--db-password, GATEWAY_DB_PASSWORD)',
  }),
  database_missing: row<DatabaseAddress>({
    http: 503,
    message: ({ host, port, database }) => `there is no database ${database} on Postgres at ${host}:${port}`,
    fix: ({ database }) => `create it with \`createdb ${database}\`, or check database.database (--db-database, GATEWAY_DB_DATABASE)`,
  }),
  database_full: row<DatabaseAddress>({
    http: 503,
    message: ({ host, port }) => `Postgres at ${host}:${port} has no free connections`,
    fix: () =>
      'raise max_connections of Postgres, or lower database.max_open_connections (GATEWAY_DB_MAX_OPEN_CONNECTIONS) and database.max_builder_connections (GATEWAY_DB_MAX_BUILDER_CONNECTIONS)',
  }),
  database_read_only: row<DatabaseAddress>({
    http: 503,
    message: ({ host, port }) => `Postgres at ${host}:${port} is read-only: it is a replica, or default_transaction_read_only is on`,
    fix: () => 'set database.host (--db-host, GATEWAY_DB_HOST) to the primary, or make this server writable',
  }),
  database_exhausted: row<DatabaseAddress & { reason: string }>({
    http: 503,
    message: ({ host, port, reason }) => `Postgres at ${host}:${port} cannot write: ${reason}`,
    fix: () => 'free disk space or memory on its host; the gateway needs no restart',
  }),
  migration_pending: row<{ pending: readonly string[] }>({
    http: 503,
    message: ({ pending }) =>
      `the database lacks ${pending.length === 1 ? 'a migration' : `${pending.length} migrations`}: ${pending.join(', ')}`,
    fix: () => 'run `gateway migrate up`, then start again',
  }),
  database_newer: row<{ unknown: readonly string[] }>({
    http: 503,
    message: ({ unknown }) => `the database is newer than this gateway: it has ${unknown.join(', ')}`,
    fix: () => 'install the version of the gateway that made these migrations, or a later one',
  }),
  migration_drops: row<{ migrations: readonly string[]; tables: readonly string[]; before: number }>({
    http: 409,
    message: ({ migrations, tables }) =>
      `rolling back ${migrations.join(', ')} would drop ${tables.length === 1 ? 'a table that holds' : 'tables that hold'} data: ${tables.join(', ')}; nothing was rolled back`,
    fix: ({ before }) =>
      `${before > 0 ? `\`--max ${before}\` stops before that; ` : ''}to lose them on purpose, back Postgres up and repeat it with \`--drop-data\``,
  }),
  migration_failed: row<{ file: string; reason: string; left: string }>({
    http: 503,
    message: ({ file, reason, left }) => `the migration ${file} failed: ${reason}; ${left}`,
    fix: ({ file }) => `resolve what Postgres reports, or correct ${file}, then run the command again`,
  }),
  migration_locked: row<{ file: string; seconds: number; holders: readonly string[] }>({
    http: 503,
    message: ({ file, seconds, holders }) =>
      `the migration ${file} could not lock its tables within ${seconds} s and was rolled back; ${
        holders.length === 0 ? 'other sessions hold them' : `the longest transactions are of ${holders.join(', ')}`
      }`,
    fix: () =>
      'wait until they finish (a backup, for example) or end them with `select pg_terminate_backend(pid)`, then run the command again',
  }),
  kv_unreachable: row<KvAddress & { reason: string }>({
    http: 503,
    message: (it) => `${kvName(it)} cannot be reached: ${it.reason}`,
    fix: (it) => `check that it runs, and correct ${kvSettings(it)}`,
  }),
  kv_tls: row<KvAddress & { reason: string }>({
    http: 503,
    message: (it) => `TLS with ${kvName(it)} failed: ${it.reason}`,
    fix: (it) =>
      `name its certificate authority with kv.tls.ca_file (--kv-tls-ca-file, GATEWAY_KV_TLS_CA_FILE), the client certificate that it requires with kv.tls.cert_file and kv.tls.key_file, and the host that its certificate is for with ${kvSettings(it)}`,
  }),
  kv_refused: row<KvAddress & { reason: string }>({
    http: 503,
    message: (it) => `${kvName(it)} refused the connection: ${it.reason}`,
    fix: ({ sentinels }) =>
      `check kv.username, kv.password and kv.database${sentinels ? ', and kv.sentinel.username and kv.sentinel.password' : ''} (--kv-username, --kv-password, --kv-database, or GATEWAY_KV_USERNAME and so on)`,
  }),
  billing_setting: row<{ setting: 'url' | 'api_key' }>({
    message: ({ setting }) => `billing.enabled is true, but billing.${setting} is not set`,
    fix: ({ setting }) => {
      const name =
        setting === 'url'
          ? 'billing.url (--billing-url, GATEWAY_BILLING_URL)'
          : 'billing.api_key (--billing-api-key, GATEWAY_BILLING_API_KEY)';
      return `set ${name}, or set billing.enabled to false`;
    },
  }),
  smtp_setting: composed(),
  smtp_unreachable: row<SmtpServer & { reason: string }>({
    http: 503,
    message: ({ host, port, reason }) => `the SMTP server at ${host}:${port} cannot be reached: ${reason}`,
    fix: () =>
      'check that it runs, and correct smtp.url (--smtp-url, GATEWAY_SMTP_URL), smtp.port (--smtp-port, GATEWAY_SMTP_PORT) and smtp.ssl (--smtp-ssl, GATEWAY_SMTP_SSL)',
  }),
  smtp_tls: row<SmtpServer & { reason: string }>({
    http: 503,
    message: ({ host, port, reason }) => `TLS with the SMTP server at ${host}:${port} failed: ${reason}`,
    fix: () =>
      'name its certificate authority with smtp.ca_file (GATEWAY_SMTP_CA_FILE), set smtp.url (--smtp-url, GATEWAY_SMTP_URL) to the host that its certificate is for, and set smtp.ssl (--smtp-ssl, GATEWAY_SMTP_SSL) only for a port that speaks TLS from the first byte, usually 465',
  }),
  smtp_login: row<SmtpServer & { username: string | undefined; answer: string }>({
    http: 503,
    message: ({ host, port, username, answer }) =>
      `the SMTP server at ${host}:${port} refused ${username === undefined ? 'the connection without a login' : `the login of ${username}`}: ${answer}`,
    fix: () => 'check smtp.username (--smtp-username, GATEWAY_SMTP_USERNAME) and smtp.password (--smtp-password, GATEWAY_SMTP_PASSWORD)',
  }),
  smtp_refused: row<SmtpServer & { what: string; setting: string; answer: string }>({
    http: 503,
    message: ({ host, port, what, answer }) => `the SMTP server at ${host}:${port} refused ${what}: ${answer}`,
    fix: ({ setting }) => `correct ${setting}, or allow this login to send on that server`,
  }),
  port_in_use: row<{ port: number; bind: string; setting: string; flag: string }>({
    message: ({ port, bind }) => `port ${port} on ${bind} is already in use`,
    fix: ({ setting, flag }) => `stop the process that listens there, or choose another port with ${flag} or ${setting}`,
  }),
  port_refused: row<{ port: number; bind: string; setting: string; flag: string; reason: string; addressSetting?: string }>({
    message: ({ port, bind, reason }) => `cannot listen on ${bind}:${port}: ${reason}`,
    fix: ({ setting, flag, addressSetting = 'server.http.bind' }) =>
      `choose a port that this user may open with ${flag} or ${setting}, and an address of this machine with ${addressSetting}`,
  }),
  host_invalid: row<{ host: string; reason: string }>({
    message: ({ host, reason }) => `the host ${JSON.stringify(host)} cannot be used: ${reason}`,
    fix: () => 'give the public name alone with --host or GATEWAY_HOST, such as gateway.example.com or https://gateway.example.com:8443',
  }),
  credential_invalid: row<{ setting: string; flag: string; env: string; number: number; reason: string; fix: string }>({
    message: ({ setting, number, reason }) => `entry ${number} of ${setting} ${reason}`,
    fix: ({ flag, env, fix }) => `${fix}; it is set by ${flag}, ${env} or the configuration file`,
  }),
  no_credentials: row({
    message: () =>
      'no request could be authenticated: server.auth.native is false and neither server.auth.api_keys nor server.auth.basic is set',
    fix: () =>
      'set credentials with --api-auth (GATEWAY_API_AUTH) or --basic-auth (GATEWAY_BASIC_AUTH), or accept the stored API keys with --native (GATEWAY_NATIVE_AUTH=true)',
  }),
  tls_incomplete: composed(),
  tls_file: row<{ what: string; path: string; reason: string; setting: string; flag: string }>({
    message: ({ what, path, reason }) => `the ${what} in ${path} cannot be used: ${reason}`,
    fix: ({ setting, flag }) => `correct the file, or name another with ${flag} or ${setting}`,
  }),
} as const;
